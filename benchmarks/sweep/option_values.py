"""Other values of an option than its default, by its declaration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from annotated_types import Ge, Le
from pydantic.fields import FieldInfo

from npuw_layer.options import GROUPS
from npuw_layer.options.base import Only, kind_of, written


@dataclass(frozen=True, slots=True)
class Option:
    """Option with the values that a sweep compares to its default."""

    name: str
    values: tuple[str, ...]
    """Values as a configuration has them; empty if the declaration has none."""


def every_option() -> list[Option]:
    """Return all options of compiled models, group by group."""
    return [
        Option(str(field.alias), tuple(map(written, other_values(field))))
        for group in GROUPS
        for field in group.model_fields.values()
    ]


def other_values(field: FieldInfo) -> Iterator[object]:
    """Yield the values of a field that are compared to its default.

    Of a flag and of named values, these are all others; of a number, its half, or its double or 1
    if the half is the same or not allowed. Of free text, functions, maps and lists there are none.
    """
    only = next((each for each in field.metadata if isinstance(each, Only)), None)
    kind = kind_of(field.annotation)
    if only is not None:
        yield from (value for value in only.values if value != field.default)
    elif kind is bool:
        yield from (value for value in (True, False) if value is not field.default)
    elif kind is Literal:
        named = cast(tuple[object, ...], get_args(field.annotation))
        yield from (value for value in named if value != field.default)
    elif kind is int or kind is float:
        yield from list(_near(field))[:1]


def _near(field: FieldInfo) -> Iterator[float]:
    """Yield values near a number, best first."""
    default: Any = field.default
    half = default / 2 if isinstance(default, float) else default // 2
    least = _bound(field, Ge, "ge", default)
    most = max(_bound(field, Le, "le", 2 * default), 1)
    for value in (half, 2 * default, 1):
        if value != default and least <= value <= most:
            yield value


def _bound(field: FieldInfo, kind: type[object], name: str, unbounded: float) -> float:
    return next((getattr(m, name) for m in field.metadata if isinstance(m, kind)), unbounded)
