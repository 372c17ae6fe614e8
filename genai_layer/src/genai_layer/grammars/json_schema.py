"""JSON schemas with xgrammar's meaning, in llguidance's dialect.

Source: docs/reference/genai.md#structured-output.
"""

from __future__ import annotations

import json
from typing import Any, cast

from genai_layer.errors import ConfigError

_OPTIONS = {"whitespace_pattern": r"[ \n\t]+", "coerce_one_of": True}
"""llguidance's options: spaces between tokens as in xgrammar, oneOf as anyOf."""

_INNER = ("items", "additionalItems", "additionalProperties", "anyOf", "oneOf", "prefixItems")
"""Keywords with a schema or a list of schemas; those of allOf are merged, so they stay open."""

_NAMED = ("properties", "patternProperties", "$defs", "definitions")
"""Keywords with schemas by name."""

_JOINED = ("allOf", "anyOf", "oneOf", "$ref")
_OPEN = ("additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames")


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
        ConfigError: a keyword for schemas by name has another value.
    """
    return {"x-guidance": _OPTIONS, **_closed(schema)} if isinstance(schema, dict) else schema


def _closed(schema: Any) -> Any:
    """Add to a schema what xgrammar assumes: no further properties or items, whole patterns."""
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
    if isinstance(found.get("pattern"), str):
        found["pattern"] = f"^(?:{unanchored(found['pattern'])})$"
    if not found.keys() & {*_JOINED}:
        if "properties" in found and not found.keys() & {*_OPEN}:
            found["additionalProperties"] = False
        if "prefixItems" in found:
            found.setdefault("items", False)
    return found


def unanchored(pattern: str) -> str:
    """Return a pattern without the anchors at its ends."""
    escapes = len(pattern[:-1]) - len(pattern[:-1].rstrip("\\"))
    end = -1 if pattern.endswith("$") and escapes % 2 == 0 else None
    return pattern[pattern.startswith("^") : end]
