"""Options as rows of a table: name, type, default, allowed values, effect, source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast, get_args, get_origin

from annotated_types import Ge, Le
from pydantic.fields import FieldInfo

from npuw_layer.options.base import (
    OURS,
    Only,
    effects,
    kind_of,
    written,
)
from npuw_layer.options.model import GROUPS

_KINDS: dict[object, tuple[str, str]] = {
    bool: ("flag", "YES or NO"),
    int: ("integer", "an integer"),
    str: ("text", "text"),
    float: ("number", "a number"),
    tuple: ("list", "values separated by commas"),
    dict: ("map", 'a map of options, such as {"NPU_TILES": 2}'),
}


_COUNTABLE = 1 << 32
"""Upper bounds beyond this number are not shown."""


@dataclass(frozen=True, slots=True)
class Described:
    """Description of one option."""

    group: str
    name: str
    type: str
    default: str | None
    """None if the option is unset; its effect then names what decides."""
    allowed: str
    effect: str
    source: str
    """Project that defines the option."""


def describe() -> list[Described]:
    """Return descriptions of all options, group by group."""
    return [
        _described(group.title, field, effects(group).get(name, ""))
        for group in GROUPS
        for name, field in group.model_fields.items()
    ]


def allowed(field: FieldInfo) -> str:
    """Return the allowed values of an option: "from 1 to 64", "YES or NO"."""
    only = next((each for each in field.metadata if isinstance(each, Only)), None)
    if only is not None:
        return f"{_either(map(written, only.values))}, because {only.because}"
    return _typed(field)


def _typed(field: FieldInfo) -> str:
    kind = kind_of(field.annotation)
    if kind is Literal:
        values = cast(tuple[object, ...], get_args(field.annotation))
        return _either(written(value) or "empty" for value in values)
    least, most = _bound(field, Ge, "ge"), _bound(field, Le, "le")
    if least is not None:
        what = "a number" if kind is float else "an integer"
        bounded = most is not None and most <= _COUNTABLE
        return f"{what} from {least:,} to {most:,}" if bounded else f"{what}, {least} or more"
    if kind is tuple:
        return _list_of(get_args(field.annotation)[0])
    return _KINDS.get(kind, ("", "text"))[1]


def _list_of(element: object) -> str:
    if get_origin(element) is Callable:
        return "two functions from bytes to bytes"
    if element is int:
        return "integers separated by commas"
    if get_origin(element) is Annotated:
        bounds: FieldInfo = get_args(element)[1]
        least, most = _bound(bounds, Ge, "ge"), _bound(bounds, Le, "le")
        return f"integers from {least:,} to {most:,}, separated by commas"
    return _KINDS[tuple][1]


def _described(group: str, field: FieldInfo, effect: str) -> Described:
    name = field.alias or ""
    kind = kind_of(field.annotation)
    kinds = "enum" if kind is Literal else _KINDS.get(kind, ("text", ""))[0]
    if kind is tuple and get_origin(get_args(field.annotation)[0]) is Callable:
        kinds = "functions"
    original = "NPUW" if name.removeprefix("++").startswith("NPUW") else "OpenVINO"
    return Described(
        group=group,
        name=name,
        type=kinds,
        default=_default(field),
        allowed=allowed(field),
        effect=effect,
        source="this project" if field.json_schema_extra == OURS else original,
    )


def _default(field: FieldInfo) -> str | None:
    if field.default is None:
        return None
    return "{}" if field.default == {} else written(field.default)


def _bound(field: FieldInfo, kind: type[Any], name: str) -> int | None:
    found = next((each for each in field.metadata if isinstance(each, kind)), None)
    return None if found is None else getattr(found, name)


def _either(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
