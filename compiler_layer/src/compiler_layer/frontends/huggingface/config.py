"""Values of a ``config.json``, each checked when it is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from compiler_layer.errors import BadModel, UnsupportedModel
from compiler_layer.model_folder import read_object

_TOO_LARGE = 1 << 24
"""Limit of all sizes; arrays of such sizes are created before tensors are read."""


_MAX_LAYERS = 1 << 10
"""Limit of the number of layers; their graph is begun before their weights are read."""

_MAX_FILE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Config:
    """JSON object of a file; an absent key has a default, and ``null`` is no value.

    Every method takes a key and raises ``BadModel`` or ``UnsupportedModel`` that names the key.
    """

    path: Path
    values: Mapping[str, Any]
    prefix: str = ""
    """Path of the object in the file, e.g. ``rope_scaling.``."""
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Values of absent keys; the other absent keys have none."""

    @staticmethod
    def read(path: Path) -> Config:
        """Read a file.

        Raises:
            BadModel: the file is missing, or holds no JSON object.
        """
        return Config(path, read_object(path, _MAX_FILE_BYTES))

    def completed(self, defaults: Mapping[str, Any], aliases: Mapping[str, str]) -> Config:
        """Return the object with defaults, and with aliases as the keys that they stand for."""
        plain = {key: value for key, value in self.values.items() if key not in aliases}
        meant = {aliases[key]: value for key, value in self.values.items() if key in aliases}
        return replace(self, values=plain | meant, defaults=defaults)

    @property
    def before_5(self) -> bool:
        """True if a version of transformers before 5 wrote the file."""
        return re.match(r"[0-4]\.", str(self.values.get("transformers_version"))) is not None

    def value(self, key: str) -> Any:
        """Return the value of a key, of any type."""
        return self.values[key] if key in self.values else self.defaults.get(key)

    def positive(self, key: str) -> int:
        """Return a positive integer."""
        value = _integer(self.value(key))
        if value is None or not 0 < value < _TOO_LARGE:
            raise self.bad(key, f"a positive integer below {_TOO_LARGE}")
        return value

    def layers(self, key: str) -> int:
        """Return a number of layers."""
        count = self.positive(key)
        if count > _MAX_LAYERS:
            raise self.bad(key, f"at most {_MAX_LAYERS}")
        return count

    def optional_positive(self, key: str) -> int | None:
        """Return a positive integer, or None if the key has no value."""
        return None if self.value(key) is None else self.positive(key)

    def count(self, key: str) -> int:
        """Return an integer that is not negative."""
        value = _integer(self.value(key))
        if value is None or value < 0:
            raise self.bad(key, "an integer not below 0")
        return value

    def number(self, key: str) -> float:
        """Return a positive number."""
        value = self.value(key)
        if not _is_positive(value):
            raise self.bad(key, "a positive number")
        return float(value)

    def optional_number(self, key: str) -> float | None:
        """Return a positive number, or None if the key has no value."""
        return None if self.value(key) is None else self.number(key)

    def numbers(self, key: str, count: int) -> list[float]:
        """Return a list of ``count`` positive numbers."""
        value = self.value(key)
        items = cast(list[Any], value) if isinstance(value, list) else []
        if len(items) != count or not all(map(_is_positive, items)):
            raise self.bad(key, f"a list of {count} positive numbers")
        return [float(each) for each in items]

    def flag(self, key: str) -> bool:
        """Return a boolean; ``null`` is false."""
        value = self.value(key)
        if not isinstance(value, bool | None):
            raise self.bad(key, "true or false")
        return bool(value)

    def choice(self, key: str, *allowed: str) -> str:
        """Return one of the allowed words."""
        value = self.value(key)
        if value not in allowed:
            raise self.unsupported(key)
        return value

    def section(self, key: str) -> Config | None:
        """Return a nested object, or None if the key has no value or an empty object."""
        value = self.value(key)
        if not isinstance(value, dict | None):
            raise self.bad(key, "an object")
        values = cast(dict[str, Any], value or {})
        return Config(self.path, values, f"{self.prefix}{key}.") if values else None

    def refuse(self, *keys: str) -> None:
        """Reject keys that have a value other than false."""
        for key in keys:
            if self.value(key) not in (None, False):
                raise self.unsupported(key)

    def require(self, key: str, only: object) -> None:
        """Reject every value but one; the key may be absent."""
        if key in self.values and self.values[key] != only:
            raise self.unsupported(key)

    def refuse_null(self, key: str) -> None:
        """Reject null, as transformers does not compute with it."""
        if key in self.values and self.values[key] is None:
            raise self.bad(key, "a value")

    def bad(self, key: str, wanted: str) -> BadModel:
        """Return the error for an invalid value."""
        return BadModel(self.path, f"{self.prefix}{key} must be {wanted}, not {self.value(key)!r}")

    def unsupported(self, key: str) -> UnsupportedModel:
        """Return the error for a value that is not supported."""
        return UnsupportedModel(
            f"{self.path}: {self.prefix}{key} = {self.value(key)!r} is not supported"
        )


def _integer(value: Any) -> int | None:
    """Return an integer that may be written as a float, e.g. 4.0; None for other values."""
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < 1e30
