"""Grammar of a requested format: any text, a JSON object, or JSON of a schema."""

from __future__ import annotations

import json

from genai_layer.serve.openai.schemas.formats import (
    FlatSchemaFormat,
    JsonFormat,
    SchemaFields,
    SchemaFormat,
    TextFormat,
)
from genai_layer.structured.formats import JSONSchema, StructuralFormat

_OBJECT: dict[str, object] = {"type": "object"}


def format_grammar(
    given: TextFormat | JsonFormat | SchemaFormat | FlatSchemaFormat | None,
) -> StructuralFormat | None:
    """Return the grammar of a format; None for any text."""
    if given is None or isinstance(given, TextFormat):
        return None
    if isinstance(given, JsonFormat):
        return JSONSchema(json.dumps(_OBJECT))
    schema: SchemaFields = given.json_schema if isinstance(given, SchemaFormat) else given
    return JSONSchema(json.dumps(_OBJECT if schema.json_schema is None else schema.json_schema))
