"""Golden file tests/goldens/anthropic.json.xz: JSON schemas of what the official client parses.

The schemas are those of the client's types: a message, the events of a stream, a count of tokens,
an error. Of the kinds of content, those of text and of calls of tools are kept.

Needs the client, which nothing else here does:

    pip install anthropic
    python tools/make_anthropic_goldens.py        # from the checkout
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

from anthropic.types import ErrorResponse, Message, MessageTokensCount, RawMessageStreamEvent
from pydantic import TypeAdapter

TARGET = Path(__file__).resolve().parent.parent / "tests" / "goldens" / "anthropic.json.xz"
TYPES: dict[str, Any] = {
    "message": Message,
    "event": RawMessageStreamEvent,
    "count": MessageTokensCount,
    "error": ErrorResponse,
}
KEPT = {"text": "TextBlock", "tool_use": "ToolUseBlock"}
"""Kinds of content that the server writes."""


def narrowed(schema: Any) -> Any:
    """Return a schema whose unions of kinds of content have the kept kinds alone."""
    if isinstance(schema, list):
        return [narrowed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kinds = schema.get("discriminator", {}).get("mapping", {})
    if KEPT.keys() <= kinds.keys():
        return {"oneOf": [{"$ref": kinds[kind]} for kind in KEPT]}
    return {name: narrowed(value) for name, value in schema.items()}


def reached(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without the definitions that no reference reaches."""
    defined = schema.pop("$defs", {})
    kept: dict[str, Any] = {}
    text = json.dumps(schema)
    while found := [name for name in defined if f'/{name}"' in text and name not in kept]:
        kept |= {name: defined[name] for name in found}
        text = json.dumps([schema, kept])
    return {**schema, "$defs": kept}


def main() -> None:
    """Write the file."""
    schemas = {
        name: reached(narrowed(TypeAdapter(one).json_schema())) for name, one in TYPES.items()
    }
    TARGET.write_bytes(lzma.compress(json.dumps(schemas).encode()))
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
