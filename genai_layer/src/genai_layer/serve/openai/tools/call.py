"""A call of a function, as a model writes it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, cast

from genai_layer.errors import ParseError
from genai_layer.parsers.tool_calls import Llama3JsonToolParser
from genai_layer.serve.openai.tools.forms import Form


def _new_id() -> str:
    return f"call_{secrets.token_hex(12)}"


@dataclass(frozen=True, slots=True)
class Call:
    """Call of a function."""

    name: str
    arguments: str
    """JSON text of an object."""
    id: str = field(default_factory=_new_id)


def read_call(text: str, form: Form, names: Collection[str]) -> Call | None:
    """Return the call that a text is; None if the text is no call of a known function.

    Args:
        text: text between the tags of the form.
        form: form of calls.
        names: known functions.
    """
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    message: dict[str, Any] = {"content": text}
    try:
        Llama3JsonToolParser().parse(message)
    except ParseError:
        return None
    call = cast(dict[str, Any], message["tool_calls"][0])
    name, arguments = call.get("name"), call.get(form.arguments)
    if not isinstance(name, str) or name not in names or not isinstance(arguments, dict):
        return None
    return Call(name, json.dumps(arguments, ensure_ascii=False))
