"""Settings with checked types, and their printed form."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import cache
from typing import Any, get_type_hints

from genai_layer.property_values import item

_INTEGERS: dict[Any, str] = {
    int: "an integer from 0",
    int | None: "an integer from 0, or None",
}
"""Values that fields of integers accept, by type."""


class Settings:
    """Base of dataclasses with slots: an assignment checks the type of its value.

    Unknown names raise AttributeError, wrong types and negative integers TypeError, as in
    openvino_genai.
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        kind = _kinds(type(self)).get(name, object)
        value = item(value)
        if type(value) is int and kind in (bool, float):
            value = kind(value)
        if not isinstance(value, kind) or (type(value) is int and value < 0):
            expected = _INTEGERS.get(kind) or kind.__name__
            raise TypeError(f"{type(self).__name__}.{name} = {value!r}: must be {expected}")
        super().__setattr__(name, value)


@cache
def _kinds(settings: type[Settings]) -> dict[str, Any]:
    return get_type_hints(settings)


def block(title: str, lines: Iterable[tuple[str, object] | str]) -> str:
    """Return the printed form of settings.

    Args:
        title: name of the class.
        lines: names and values, and the printed forms of nested settings.
    """
    texts = (line if isinstance(line, str) else f"  {line[0]}: {_text(line[1])}" for line in lines)
    return f"{title} {{ \n" + "".join(f"{text}\n" for text in texts) + " }"


def _text(value: object) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return value.name
    return f"{value:g}" if isinstance(value, float) else str(value)
