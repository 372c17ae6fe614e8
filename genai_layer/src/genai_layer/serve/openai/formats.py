"""Grammar of a requested format: any text, a JSON object, or JSON of a schema.

JSON is on one line: a model that repeats spaces would not end.
"""

from __future__ import annotations

import json
from typing import Any

from genai_layer.serve.openai.schemas.formats import (
    FlatSchemaFormat,
    JsonFormat,
    SchemaFields,
    SchemaFormat,
    TextFormat,
)
from genai_layer.structured.formats import JSONSchema, StructuralFormat

_ONE_LINE = {
    "x-guidance": {
        "whitespace_flexible": False,
        "item_separator": ", ",
        "key_separator": ": ",
        "coerce_one_of": True,
    }
}
"""Options of llguidance, which compiles grammars."""


def json_grammar(schema: dict[str, Any]) -> JSONSchema:
    """Return the grammar of JSON that follows a schema."""
    return JSONSchema(json.dumps(schema | _ONE_LINE))


_OBJECT: dict[str, Any] = {"type": "object"}


def format_grammar(
    given: TextFormat | JsonFormat | SchemaFormat | FlatSchemaFormat | None,
) -> StructuralFormat | None:
    """Return the grammar of a format; None for any text."""
    if given is None or isinstance(given, TextFormat):
        return None
    if isinstance(given, JsonFormat):
        return json_grammar(_OBJECT)
    schema: SchemaFields = given.json_schema if isinstance(given, SchemaFormat) else given
    return json_grammar(_OBJECT if schema.json_schema is None else schema.json_schema)
