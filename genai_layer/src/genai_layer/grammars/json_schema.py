"""JSON schemas with xgrammar's meaning, in llguidance's dialect; a call's parameters from a schema.

Qwen's models write the parameters of a function call as ``<parameter=name>value</parameter>``:
texts stand as they are, other values as JSON.

Source: docs/reference/genai.md#structured-output.
"""

from __future__ import annotations

import json
from typing import Any, cast
from urllib.parse import quote, unquote

from genai_layer.errors import ConfigError
from genai_layer.grammars.expressions import (
    CharacterClass,
    Choice,
    Expression,
    Json,
    Literal,
    Repeat,
    Sequence,
    TextUntil,
    repeated,
)
from genai_layer.grammars.merges import check_merges
from genai_layer.grammars.references import at_pointer, extended, with_pointers
from genai_layer.grammars.regex import parse_regex
from genai_layer.grammars.schema_rules import NOTES, rewrite

_OPTIONS = {"whitespace_pattern": r"[ \n\t]+", "coerce_one_of": True}
"""llguidance's options: spaces between tokens as in xgrammar, oneOf as anyOf."""

_INNER = ("items", "additionalItems", "additionalProperties", "anyOf", "oneOf", "prefixItems")
"""Keywords with a schema or a list of schemas; those of allOf are merged, so they stay open."""

_NAMED = ("properties", "patternProperties", "$defs", "definitions")
"""Keywords with schemas by name."""

_JOINED = ("allOf", "anyOf", "oneOf", "$ref")
_CLOSED = ("properties", "patternProperties")
_OPEN = ("additionalProperties", "unevaluatedProperties", "propertyNames")


def checked_schema(schema: Any, noun: str = "json_schema") -> Any:
    """Return a schema unchanged.

    Raises:
        ConfigError: the value is neither an object nor a boolean.
    """
    if not isinstance(schema, dict | bool):
        raise ConfigError(f"{noun}: must be an object or a boolean, not {json.dumps(schema)[:50]}")
    return cast(Any, schema)


def guided_schema(schema: Any) -> Any:
    """Return a root schema in llguidance's dialect: closed objects, anchored patterns.

    Options of the schema itself, in its entry x-guidance, stay.

    Raises:
        ConfigError: a keyword for schemas by name has another value, a reference leads to no place
            of the schema, a bound excludes all answers, or too much is merged.
    """
    if not isinstance(schema, dict):
        return schema
    root, schemas = with_pointers(cast(dict[str, Any], schema))
    rewrite(schemas, root)
    guided = {"x-guidance": _OPTIONS, **_closed(root)}
    check_merges(guided)
    return guided


def _closed(schema: Any) -> Any:
    """Add to a schema what xgrammar assumes: no further properties or items, whole patterns.

    A pattern beside other keywords is searched, as in JSON Schema: a whole one may exclude their
    texts.
    """
    if isinstance(schema, list):
        return [_closed(part) for part in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    found = dict(cast(dict[str, Any], schema))
    for name in found.keys() & {*_INNER}:
        found[name] = _closed(found[name])
    for name in found.keys() & {*_NAMED}:
        if not isinstance(found[name], dict):
            raise ConfigError(f"json_schema: {name} = {found[name]!r}: must be an object")
        found[name] = {key: _closed(part) for key, part in found[name].items()}
    if found.keys() - NOTES == {"pattern"} and isinstance(found["pattern"], str):
        found["pattern"] = f"^(?:{unanchored(found['pattern'])})$"
    if not found.keys() & {*_JOINED}:
        if found.keys() & {*_CLOSED} and not found.keys() & {*_OPEN}:
            found["additionalProperties"] = False
        if "prefixItems" in found:
            found.setdefault("items", False)
    return found


def unanchored(pattern: str) -> str:
    """Return a pattern without the anchors at its ends."""
    escapes = len(pattern[:-1]) - len(pattern[:-1].rstrip("\\"))
    end = -1 if pattern.endswith("$") and escapes % 2 == 0 else None
    return pattern[pattern.startswith("^") : end]


_END = "</parameter>"
_SPACE = Repeat(CharacterClass(((0x20, 0x20), (0x09, 0x0A))), 0, None)
_LINE = CharacterClass(tuple((ord(c), ord(c)) for c in "<>&\r\n"), negated=True)
"""A character of a text with a limited length."""
_NOTES = {"title", "description", "default", "examples", "type", "properties", "required"}
_TYPES: dict[type, str] = {dict: "an object", list: "a list", str: "a text", int: "an integer"}
_ROOT_ID = "http://parameters/"
"""Address of the parameters' schema in the schema of one of its values."""
_ROOT = _NOTES | {"$defs", "definitions", "$schema", "additionalProperties"}


def parameters(schema: Any) -> Expression:
    """Return the expression of the parameters, which follow each other in the schema's order.

    Raises:
        ConfigError: the schema is not that of an object, or has a keyword that is not supported.
    """
    if not isinstance(schema, dict) or cast(dict[str, Any], schema).get("type") != "object":
        raise ConfigError("QwenXMLParametersFormat: the schema needs the type object; set it")
    _reject(cast(dict[str, Any], schema), _ROOT)
    root, _ = with_pointers(cast(dict[str, Any], schema))
    if root.get("additionalProperties"):
        raise ConfigError(
            "QwenXMLParametersFormat: additionalProperties are not supported; list properties"
        )
    required = _field(root, "required", list)
    parts: list[Expression] = []
    for name in _field(root, "properties", dict):
        value = _value(extended("/properties", name), root)
        parameter = Sequence((_SPACE, Literal(f"<parameter={name}>"), value))
        parts.append(parameter if name in required else Repeat(parameter, 0, 1))
    return Sequence(tuple(parts))


def _value(place: str, root: dict[str, Any]) -> Expression:
    """Return the expression of a value and the end of its parameter.

    Args:
        place: JSON pointer to the value's schema.
        root: schema of the parameters, in which references are resolved.
    """
    target, schema = _target(place, root)
    if "anyOf" in schema:
        options = range(len(_field(schema, "anyOf", list)))
        return Choice(tuple(_value(f"{target}/anyOf/{option}", root) for option in options))
    if schema.get("type") == "string" and not {"enum", "const"} & schema.keys():
        return _text(schema)
    whole = {name: value for name, value in root.items() if name != "$schema"}
    part = {"$ref": f"{_ROOT_ID}#{quote(place)}", "$defs": {"root": {**whole, "$id": _ROOT_ID}}}
    return Sequence((_SPACE, Json(guided_schema(part)), _SPACE, Literal(_END)))


def _text(schema: dict[str, Any]) -> Expression:
    _reject(schema, _NOTES | {"pattern", "minLength", "maxLength"})
    if "pattern" in schema:
        value = parse_regex(_field(schema, "pattern", str))
    elif {"minLength", "maxLength"} & schema.keys():
        most = _field(schema, "maxLength", int) if "maxLength" in schema else None
        value = repeated(_LINE, _field(schema, "minLength", int), most)
    else:
        return TextUntil((_END,))
    return Sequence((_SPACE, value, _SPACE, Literal(_END)))


def _field(schema: dict[str, Any], name: str, kind: type) -> Any:
    """Return the value of a keyword; an empty one, or 0, if the keyword is missing.

    Raises:
        ConfigError: the value is not of the kind.
    """
    value = schema.get(name, kind())
    if type(value) is not kind:
        raise ConfigError(f"QwenXMLParametersFormat: {name} = {value!r}: must be {_TYPES[kind]}")
    return value


def _target(place: str, root: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Follow references; return the place where they end, and its schema, {} for a boolean.

    Raises:
        ConfigError: references form a circle.
    """
    seen: set[str] = set()
    while isinstance(schema := at_pointer(root, place), dict):
        fields = cast(dict[str, Any], schema)
        reference = fields.get("$ref")
        if reference is None:
            return place, fields
        if place in seen:
            raise ConfigError(
                f"QwenXMLParametersFormat: {reference} leads back to itself; define it"
            )
        seen.add(place)
        place = unquote(reference).removeprefix("#")
    return place, {}


def _reject(schema: dict[str, Any], known: set[str]) -> None:
    for name in schema.keys() - known:
        raise ConfigError(f"QwenXMLParametersFormat: {name} is not supported; remove it")
