"""The values of a ``config.json``, each checked as it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from compiler_layer.errors import BadModel, UnsupportedModel

_TOO_LARGE = 1 << 24
"""No model has so many of anything; arrays are made of such sizes before tensors are looked at."""


_MAX_LAYERS = 1 << 10
"""No model has more layers; a graph of them is begun before their weights are looked for."""

_MAX_FILE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Config:
    """A JSON object of a file; an absent key and ``null`` mean the same.

    Every method takes a key and raises ``BadModel`` or ``UnsupportedModel`` that names it.
    """

    path: Path
    values: Mapping[str, Any]
    prefix: str = ""
    """Where in the file the object stands, e.g. ``rope_scaling.``."""

    @staticmethod
    def read(path: Path) -> Config:
        """Read a file.

        Raises:
            BadModel: it is missing, or holds no JSON object.
        """
        try:
            if path.stat().st_size > _MAX_FILE_BYTES or not path.is_file():
                raise BadModel(path, f"is no file of at most {_MAX_FILE_BYTES} bytes")
            values: Any = json.loads(path.read_text())
        except OSError as error:
            raise BadModel(path, error.strerror or str(error)) from None
        except (ValueError, RecursionError) as error:
            raise BadModel(path, f"no JSON: {error}") from None
        if not isinstance(values, dict):
            raise BadModel(path, "no JSON object")
        return Config(path, cast(dict[str, Any], values))

    def has(self, key: str) -> bool:
        """Tell whether there is a value."""
        return self.values.get(key) is not None

    def positive(self, key: str, default: int | None = None) -> int:
        """Give a positive integer."""
        value = self._value(key, default)
        if type(value) is not int or not 0 < value < _TOO_LARGE:
            raise self.bad(key, f"a positive integer below {_TOO_LARGE}")
        return value

    def layers(self, key: str, default: int | None = None) -> int:
        """Give a number of layers."""
        count = self.positive(key, default)
        if count > _MAX_LAYERS:
            raise self.bad(key, f"at most {_MAX_LAYERS}")
        return count

    def optional_positive(self, key: str) -> int | None:
        """Give a positive integer, or None if there is no value."""
        return self.positive(key) if self.has(key) else None

    def count(self, key: str, default: int) -> int:
        """Give an integer that is not negative."""
        value = self._value(key, default)
        if type(value) is not int or value < 0:
            raise self.bad(key, "an integer not below 0")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Give a positive number."""
        value = self._value(key, default)
        if not _is_positive(value):
            raise self.bad(key, "a positive number")
        return float(value)

    def optional_number(self, key: str) -> float | None:
        """Give a positive number, or None if there is no value."""
        return self.number(key) if self.has(key) else None

    def numbers(self, key: str, count: int) -> list[float]:
        """Give a list of that many positive numbers."""
        value = self.values.get(key)
        items = cast(list[Any], value) if isinstance(value, list) else []
        if len(items) != count or not all(map(_is_positive, items)):
            raise self.bad(key, f"a list of {count} positive numbers")
        return [float(each) for each in items]

    def flag(self, key: str, default: bool) -> bool:
        """Give a truth value."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self.bad(key, "true or false")
        return value

    def choice(self, key: str, *allowed: str) -> str:
        """Give one of some words; the first is the default."""
        value = self._value(key, allowed[0])
        if value not in allowed:
            raise self.unsupported(key)
        return value

    def section(self, key: str) -> Config | None:
        """Give an object within this one, or None if there is none."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.bad(key, "an object")
        return Config(self.path, cast(dict[str, Any], value), f"{self.prefix}{key}.")

    def refuse_unless(self, key: str, only: object) -> None:
        """Refuse every value but one; the key may be absent."""
        if self.has(key) and self.values[key] != only:
            raise self.unsupported(key)

    def bad(self, key: str, wanted: str) -> BadModel:
        """Make the error of a value that is not what it has to be."""
        return BadModel(
            self.path, f"{self.prefix}{key} must be {wanted}, not {self.values.get(key)!r}"
        )

    def unsupported(self, key: str) -> UnsupportedModel:
        """Make the error of a value that is not understood."""
        return UnsupportedModel(
            f"{self.path}: {self.prefix}{key} = {self.values.get(key)!r} is not supported"
        )

    def _value(self, key: str, default: Any) -> Any:
        return self.values[key] if self.has(key) else default


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < 1e30
