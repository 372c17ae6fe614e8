"""Messages in the form that a chat template supports: tools, system messages, content in parts.

A template without tools gets them in the generic form, and one without system messages gets them
in the next user message.

Source: measured on openvino_genai 2026.4, whose engine (minja) does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from genai_layer.chat_history import Message
from genai_layer.chat_templates.generic_tools import describe_tools, without_calls
from genai_layer.chat_templates.support import TemplateSupport, parts_of


def fitted(
    messages: Sequence[Message], tools: Sequence[Any], support: TemplateSupport
) -> list[Message]:
    """Return messages that a template shows completely.

    Args:
        messages: the chat.
        tools: the tools of the chat.
        support: the template's.

    Raises:
        TemplateError: a tool, an earlier call or its result is not JSON.
    """
    found = list(messages)
    if not support.tools:
        found = _with_generic_tools(found, tools)
    if not support.system:
        found = _without_system(found)
    if not support.texts:
        found = [{**one, "content": parts_of(one.get("content"))} for one in found]
    return found


def _with_generic_tools(messages: Sequence[Message], tools: Sequence[Any]) -> list[Message]:
    """Return messages with all tools, calls and results as text."""
    found = without_calls(messages)
    if tools:
        described = describe_tools(tools)
        if found and found[0].get("role") == "system":
            described = _joined([found.pop(0).get("content"), described], "\n\n")
        found.insert(0, {"role": "system", "content": described})
    return found


def _without_system(messages: Sequence[Message]) -> list[Message]:
    """Return messages in which system messages begin the next user message, or are one."""
    found: list[Message] = []
    pending: list[Any] = []
    for message in messages:
        content, role = message.get("content"), message.get("role")
        if role == "system":
            pending.append(content)
            continue
        if pending and role == "user":
            message = {**message, "content": _joined([*pending, content], "\n")}
        elif pending:
            found.append({"role": "user", "content": _joined(pending, "\n")})
        pending = []
        found.append(message)
    return [*found, {"role": "user", "content": _joined(pending, "\n")}] if pending else found


def _joined(contents: Sequence[Any], separator: str) -> Any:
    """Return contents as one: a text, or parts if one of them has parts."""
    if all(content is None or isinstance(content, str) for content in contents):
        return separator.join(filter(None, contents))
    parts: list[Any] = []
    for content in contents:
        parts += content if isinstance(content, list) else parts_of(str(content or ""))
    return parts
