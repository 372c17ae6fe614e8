"""Keywords of JSON schemas that llguidance lacks, written with those that it has.

A keyword that no rule can write stays: llguidance rejects it by name, or ignores it if it is
lenient. So does a keyword with a value of a wrong type.

Source: JSON Schema 2020-12 Validation, sections 6 and 7; docs/reference/genai.md#json-schemas.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Iterable
from functools import partial
from itertools import chain, permutations
from typing import Any, cast
from urllib.parse import unquote

from genai_layer.errors import ConfigError
from genai_layer.grammars.json_formats import ANY, PATTERNS
from genai_layer.grammars.references import at_pointer

Schema = dict[str, Any]

NOTES = {
    *("type", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    *("$comment", "$schema", "$defs", "definitions", "x-guidance"),
}
"""Keywords that may stand beside the one that decides."""

_BOUNDS = {"minimum": -1, "exclusiveMinimum": -1, "maximum": 1, "exclusiveMaximum": 1}
"""Bounds of numbers, with the sign of the side that they exclude."""
_MOST, _LEAST = 9 * 10**18, 10**18
"""Largest number with a bound, and the first one that no bound may exclude; both also negative.

llguidance computes with 64 bits, of which doubles hold the bounds.
"""
_STEP = 2**-50
"""Distance of a number from an exclusive bound, where llguidance has no such bounds."""

_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_ENDLESS = 1 << 31
"""Count of characters, items and properties that no answer has."""

_SIZED = {"items", "minItems", "maxItems", "uniqueItems"}
_LISTED = 5
"""Distinct values whose arrays are listed: 326 arrays."""
_KINDS = {
    **{bool: ("boolean",), int: ("integer", "number"), float: ("number",), str: ("string",)},
    **{type(None): ("null",), dict: ("object",), list: ("array",)},
}
"""Types in JSON Schema of Python's values."""


def rewrite(schemas: Iterable[Schema], root: Schema) -> None:
    """Write the keywords of schemas with those that llguidance has.

    Args:
        schemas: all schemas of the root, which are changed.
        root: schema that references lead into.

    Raises:
        ConfigError: a bound excludes all numbers, or all texts, that an answer may have.
    """
    found = [*schemas]
    referred = {id(_end(schema["$ref"], root)) for schema in found if "$ref" in schema}
    for rule in (_numbers, _exclusive, _counts, partial(_names, referred), _unique, _format):
        for schema in found:
            rule(schema, root)


def _end(reference: Any, root: Schema) -> Any:
    """Return what a reference leads to."""
    return at_pointer(root, unquote(str(reference)).removeprefix("#"))


def _numbers(schema: Schema, root: Schema) -> None:
    """Move bounds inwards, to numbers that llguidance can compute with."""
    for name, side in _BOUNDS.items():
        value: Any = schema.get(name)
        if _is_number(value):
            if side * value <= -_LEAST:
                raise ConfigError(
                    f"json_schema: {name} = {reprlib.repr(value)}: no number of 18 digits is "
                    "within the bound; move it"
                )
            schema[name] = side * _rounded_down(min(side * value, _MOST))


def _exclusive(schema: Schema, root: Schema) -> None:
    """Write an exclusive bound as the next number, if the opposite bound is less than 1 away.

    llguidance allows the bound itself there.
    """
    for name, inclusive in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        side, value = _BOUNDS[name], cast(Any, schema.get(name))
        gap = _gap(value, schema, -side) if _is_number(value) else 1.0
        if gap < 1:
            inner = value - side * max(min(_STEP, gap / 2), math.ulp(value))
            other = cast(Any, schema.get(inclusive))
            schema[inclusive] = side * min(
                side * inner, side * (other if _is_number(other) else inner)
            )
            del schema[name]


def _gap(value: float, schema: Schema, side: int) -> float:
    """Return the distance of a number to the bounds of a side."""
    bounds: list[Any] = [schema.get(name) for name in _BOUNDS if _BOUNDS[name] == side]
    return min((abs(bound - value) for bound in bounds if _is_number(bound)), default=math.inf)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _rounded_down(value: float) -> float:
    """Return a number that a double has, at most the value."""
    found = float(value)
    return value if found == value else math.nextafter(found, -math.inf) if found > value else found


def _counts(schema: Schema, root: Schema) -> None:
    """Write counts as integers, and leave out those that no answer exceeds."""
    for name in _COUNTS:
        value: Any = schema.get(name)
        if not _is_number(value) or value % 1:
            continue
        if value < _ENDLESS:
            schema[name] = int(value)
        elif name.startswith("max"):
            del schema[name]
        else:
            raise ConfigError(
                f"json_schema: {name} = {reprlib.repr(value)}: no answer is so long; lower it"
            )


def _names(referred: set[int], schema: Schema, root: Schema) -> None:
    """Write propertyNames as properties, or as patternProperties.

    Args:
        referred: identities of the schemas that references lead to, which keep their places.
        schema: the schema.
        root: the root schema.
    """
    if "propertyNames" not in schema or schema.keys() & {"properties", "patternProperties"}:
        return
    names, value = _target(schema["propertyNames"], root), schema.get("additionalProperties", True)
    if isinstance(value, dict) and id(cast(Any, value)) in referred:
        return
    known, pattern = _finite(names), _pattern(names)
    if known is not None:
        schema["properties"] = {name: value for name in known if isinstance(name, str)}
    elif pattern is not None:
        schema["patternProperties"] = {pattern: value}
    else:
        return
    del schema["propertyNames"]
    schema["additionalProperties"] = False


def _unique(schema: Schema, root: Schema) -> None:
    """Leave out uniqueItems where items cannot be equal, or list the arrays of few values."""
    if schema.get("uniqueItems") is False or schema.get("maxItems") in (0, 1):
        schema.pop("uniqueItems", None)
    if schema.get("uniqueItems") is not True or schema.keys() - NOTES - _SIZED:
        return
    values = _finite(_target(schema.get("items"), root))
    least, most = schema.get("minItems", 0), schema.get("maxItems", _LISTED)
    if not (isinstance(least, int) and isinstance(most, int)) or schema.get("type") != "array":
        return
    if values is not None and len(values) <= _LISTED:
        sizes = range(least, min(most, len(values)) + 1)
        schema["enum"] = [*chain.from_iterable(permutations(values, size) for size in sizes)]
        for name in _SIZED:
            schema.pop(name, None)


def _format(schema: Schema, root: Schema) -> None:
    """Write a format as a pattern beside the schema's own."""
    pattern, parts = _pattern_of(schema.get("format")), schema.get("allOf", [])
    if pattern is not None and isinstance(parts, list):
        schema["allOf"] = [*cast(list[Any], parts), *([{"pattern": pattern}] * bool(pattern))]
        del schema["format"]


def _pattern_of(name: Any) -> str | None:
    """Return the pattern of a format, "" for any text; None for an unknown one."""
    if not isinstance(name, str):
        return None
    return "" if name in ANY else _whole(PATTERNS[name]) if name in PATTERNS else None


def _target(schema: Any, root: Schema) -> Schema:
    """Return the schema at the end of references, as an object."""
    seen: list[Any] = []
    while isinstance(schema, dict) and "$ref" in schema and schema not in seen:
        seen.append(cast(Schema, schema))
        schema = _end(seen[-1]["$ref"], root)
    return (
        cast(Schema, schema) if isinstance(schema, dict) else {} if schema is True else {"not": {}}
    )


def _finite(schema: Schema) -> list[Any] | None:
    """Return the values that a schema lists, each once; None if it does not list them."""
    names = schema.keys() - NOTES
    values: Any = [False, True] if not names and schema.get("type") == "boolean" else None
    if names == {"enum"}:
        values = schema["enum"]
    elif names == {"const"}:
        values = [schema["const"]]
    if not isinstance(values, list):
        return None
    each = {_key(value): value for value in cast(list[Any], values) if _has_type(value, schema)}
    return [*each.values()]


def _key(value: Any) -> str:
    """Return a text that is equal for equal values: 1 is 1.0, and not true."""
    whole = isinstance(value, float) and value.is_integer()
    return json.dumps(int(cast(float, value)) if whole else value, sort_keys=True)


def _has_type(value: Any, schema: Schema) -> bool:
    """Return whether a value has the type of a schema, or one of its types."""
    names = _KINDS[type(value)]
    given: Any = schema.get("type", names)
    return isinstance(given, str | list | tuple) and any(name in given for name in names)


def _pattern(schema: Schema) -> str | None:
    """Return the pattern of a text's schema; None if it has several keywords, or another one."""
    names = schema.keys() - NOTES
    if schema.get("type", "string") != "string":
        return None
    if names == {"pattern"}:
        return schema["pattern"] if isinstance(schema["pattern"], str) else None
    if names == {"format"}:
        return _pattern_of(schema["format"])
    if names <= {"minLength", "maxLength"}:
        least, most = schema.get("minLength", 0), schema.get("maxLength", "")
        return _whole(f"(?s:.{{{least},{most}}})")
    return None


def _whole(pattern: str) -> str:
    return f"^(?:{pattern})$"
