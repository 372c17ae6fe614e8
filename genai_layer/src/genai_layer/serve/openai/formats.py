"""Grammar of a requested format: any text, a JSON object, or JSON of a schema."""

from __future__ import annotations

from typing import Any

from genai_layer.serve.openai.json_grammar import json_grammar
from genai_layer.serve.openai.schemas.formats import (
    FlatSchemaFormat,
    JsonFormat,
    SchemaFields,
    SchemaFormat,
    TextFormat,
)
from genai_layer.structured.formats import StructuralFormat

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
