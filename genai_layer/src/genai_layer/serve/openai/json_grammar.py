"""Grammar of JSON on one line: a model that repeats spaces would not end."""

from __future__ import annotations

import json
from typing import Any

from genai_layer.structured.formats import JSONSchema

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
