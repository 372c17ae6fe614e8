"""Support of a chat template for system messages, tools, and texts without parts.

A template that drops or rejects something does not show it in a prompt, so marked messages find
out what it supports.

Source: minja, include/minja/chat-template.hpp (the engine of openvino_genai).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from genai_layer.chat_history import Message
from genai_layer.chat_templates.rendering import render
from genai_layer.errors import TemplateError

_USER, _SYSTEM, _TOOL = "user-mark", "system-mark", "tool_mark"


@dataclass(frozen=True, slots=True)
class TemplateSupport:
    """Support of a template; one that shows no user message counts as one for all but tools."""

    texts: bool
    """True if the content of a message may be a text; else it must be a list of parts."""
    system: bool
    """True if system messages are shown."""
    tools: bool
    """True if tools are shown."""


@lru_cache(maxsize=16)
def support_of(source: str, tokens: tuple[tuple[str, str], ...]) -> TemplateSupport:
    """Return the support of a template.

    Args:
        source: a jinja2 template.
        tokens: names and texts of the template's variables for special tokens.
    """

    def shows(mark: str, messages: Sequence[Message], tools: Sequence[Any] = ()) -> bool:
        try:
            return mark in render(source, messages, False, {**dict(tokens), "tools": tools or None})
        except TemplateError:
            return False

    user, user_in_parts = ({"role": "user", "content": one} for one in (_USER, parts_of(_USER)))
    in_parts = not shows(_USER, [user]) and shows(_USER, [user_in_parts])
    asked = user_in_parts if in_parts else user
    system = {"role": "system", "content": parts_of(_SYSTEM) if in_parts else _SYSTEM}
    return TemplateSupport(
        texts=not in_parts,
        system=shows(_SYSTEM, [system, asked]) or not shows(_USER, [asked]),
        tools=shows(_TOOL, [asked], [_tool()]),
    )


def parts_of(content: Any) -> Any:
    """Return a text as a list of one part; other content as it is."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _tool() -> dict[str, Any]:
    """Return a function with all that templates read; some read its name beside the type."""
    argument = {"type": "string", "description": "An argument."}
    parameters = {"type": "object", "properties": {"argument": argument}, "required": ["argument"]}
    function = {"name": _TOOL, "description": "A function.", "parameters": parameters}
    return {"type": "function", "name": _TOOL, "function": function}
