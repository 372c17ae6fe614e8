"""Values of a ``config.json``, each checked when it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from compiler_layer.errors import BadModel, UnsupportedModel

_TOO_LARGE = 1 << 24
"""Limit of all sizes; arrays of such sizes are created before tensors are read."""


_MAX_LAYERS = 1 << 10
"""Limit of the number of layers; their graph is begun before their weights are read."""

_MAX_FILE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Config:
    """JSON object of a file; an absent key and ``null`` are equivalent.

    Every method takes a key and raises ``BadModel`` or ``UnsupportedModel`` that names the key.
    """

    path: Path
    values: Mapping[str, Any]
    prefix: str = ""
    """Path of the object in the file, e.g. ``rope_scaling.``."""

    @staticmethod
    def read(path: Path) -> Config:
        """Read a file.

        Raises:
            BadModel: the file is missing, or holds no JSON object.
        """
        try:
            if path.stat().st_size > _MAX_FILE_BYTES or not path.is_file():
                raise BadModel(path, f"is not a file of at most {_MAX_FILE_BYTES} bytes")
            values: Any = json.loads(path.read_text())
        except OSError as error:
            raise BadModel(path, error.strerror or str(error)) from None
        except (ValueError, RecursionError) as error:
            raise BadModel(path, f"is not JSON: {error}") from None
        if not isinstance(values, dict):
            raise BadModel(path, "is not a JSON object")
        return Config(path, cast(dict[str, Any], values))

    def has(self, key: str) -> bool:
        """Return whether the key has a value."""
        return self.values.get(key) is not None

    def positive(self, key: str, default: int | None = None) -> int:
        """Return a positive integer."""
        value = self._value(key, default)
        if type(value) is not int or not 0 < value < _TOO_LARGE:
            raise self.bad(key, f"a positive integer below {_TOO_LARGE}")
        return value

    def layers(self, key: str, default: int | None = None) -> int:
        """Return a number of layers."""
        count = self.positive(key, default)
        if count > _MAX_LAYERS:
            raise self.bad(key, f"at most {_MAX_LAYERS}")
        return count

    def optional_positive(self, key: str) -> int | None:
        """Return a positive integer, or None if the key has no value."""
        return self.positive(key) if self.has(key) else None

    def count(self, key: str, default: int) -> int:
        """Return an integer that is not negative."""
        value = self._value(key, default)
        if type(value) is not int or value < 0:
            raise self.bad(key, "an integer not below 0")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return a positive number."""
        value = self._value(key, default)
        if not _is_positive(value):
            raise self.bad(key, "a positive number")
        return float(value)

    def optional_number(self, key: str) -> float | None:
        """Return a positive number, or None if the key has no value."""
        return self.number(key) if self.has(key) else None

    def numbers(self, key: str, count: int) -> list[float]:
        """Return a list of ``count`` positive numbers."""
        value = self.values.get(key)
        items = cast(list[Any], value) if isinstance(value, list) else []
        if len(items) != count or not all(map(_is_positive, items)):
            raise self.bad(key, f"a list of {count} positive numbers")
        return [float(each) for each in items]

    def flag(self, key: str, default: bool) -> bool:
        """Return a boolean."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self.bad(key, "true or false")
        return value

    def choice(self, key: str, *allowed: str) -> str:
        """Return one of the allowed words; the first is the default."""
        value = self._value(key, allowed[0])
        if value not in allowed:
            raise self.unsupported(key)
        return value

    def section(self, key: str) -> Config | None:
        """Return a nested object, or None if the key has no value."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.bad(key, "an object")
        return Config(self.path, cast(dict[str, Any], value), f"{self.prefix}{key}.")

    def refuse_unless(self, key: str, only: object) -> None:
        """Reject every value but one; the key may be absent."""
        if self.has(key) and self.values[key] != only:
            raise self.unsupported(key)

    def bad(self, key: str, wanted: str) -> BadModel:
        """Return the error for an invalid value."""
        return BadModel(
            self.path, f"{self.prefix}{key} must be {wanted}, not {self.values.get(key)!r}"
        )

    def unsupported(self, key: str) -> UnsupportedModel:
        """Return the error for a value that is not supported."""
        return UnsupportedModel(
            f"{self.path}: {self.prefix}{key} = {self.values.get(key)!r} is not supported"
        )

    def _value(self, key: str, default: Any) -> Any:
        return self.values[key] if self.has(key) else default


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < 1e30
