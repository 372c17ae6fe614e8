"""Messages of chats and of responses, as chat templates read them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from genai_layer.serve.errors import BadRequest
from genai_layer.serve.openai.schemas.items import (
    Input,
    InputCall,
    InputContent,
    InputMessage,
    InputResult,
)
from genai_layer.serve.openai.schemas.messages import (
    AssistantMessage,
    Content,
    Message,
    PastFunction,
    ToolMessage,
)

TemplateMessage = dict[str, Any]
"""Message of a chat template: a role, a text, and calls whose arguments are objects."""

_ROLES = {"developer": "system"}
"""Roles that chat templates know under another name."""


def chat_messages(messages: Sequence[Message]) -> list[TemplateMessage]:
    """Return the messages of a chat.

    Raises:
        BadRequest: the arguments of an earlier call are no JSON object.
    """
    return [_chat_message(message, number) for number, message in enumerate(messages)]


def response_messages(instructions: str | None, given: Input) -> list[TemplateMessage]:
    """Return the messages of a response's input; calls join the message of the assistant.

    Raises:
        BadRequest: the arguments of an earlier call are no JSON object.
    """
    found = [] if instructions is None else [_message("system", instructions)]
    if isinstance(given, str):
        return [*found, _message("user", given)]
    for number, item in enumerate(given):
        if isinstance(item, InputCall):
            if not found or found[-1]["role"] != "assistant":
                found.append(_message("assistant", ""))
            call = _call(item.call_id, item.name, item.arguments, f"input.{number}.arguments")
            found[-1].setdefault("tool_calls", []).append(call)
        else:
            found.append(_input_message(item))
    return found


def _chat_message(message: Message, number: int) -> TemplateMessage:
    found = _message(message.role, _text(message.content))
    if isinstance(message, ToolMessage):
        return found | {"tool_call_id": message.tool_call_id}
    if isinstance(message, AssistantMessage) and message.tool_calls:
        found["tool_calls"] = [
            _past_call(one.id, one.function, f"messages.{number}.tool_calls.{place}.function")
            for place, one in enumerate(message.tool_calls)
        ]
    return found if message.name is None else found | {"name": message.name}


def _input_message(item: InputMessage | InputResult) -> TemplateMessage:
    if isinstance(item, InputResult):
        return _message("tool", _text(item.output)) | {"tool_call_id": item.call_id}
    return _message(item.role, _text(item.content))


def _message(role: str, content: str) -> TemplateMessage:
    return {"role": _ROLES.get(role, role), "content": content}


def _text(content: Content | InputContent | None) -> str:
    """Return the text of a message; parts begin on lines of their own."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text for part in content)


def _past_call(call_id: str, function: PastFunction, place: str) -> dict[str, Any]:
    return _call(call_id, function.name, function.arguments, f"{place}.arguments")


def _call(call_id: str, name: str, arguments: str, place: str) -> dict[str, Any]:
    """Return a call, with its arguments as an object.

    Raises:
        BadRequest: the arguments are no JSON object.
    """
    try:
        found: object = json.loads(arguments)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadRequest(f"{place}: no JSON object; pass the arguments as generated", param=place)
    function = {"name": name, "arguments": cast(dict[str, Any], found)}
    return {"id": call_id, "type": "function", "function": function}
