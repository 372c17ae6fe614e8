"""The messages of a conversation.

Source: openvino_genai.ChatHistory, docs/reference/genai.md#chat-history.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from genai_layer.checked import checked

Message = dict[str, Any]


class ChatHistory:
    """Messages with roles, and further variables for a chat template.

    Args:
        messages: earlier messages, e.g. ``[{"role": "user", "content": "Hello"}]``.
    """

    @checked
    def __init__(self, messages: Iterable[Mapping[str, Any]] = ()) -> None:
        self._messages: list[Message] = [dict(message) for message in messages]
        self._tools: list[Any] = []
        self._extra_context: dict[str, Any] = {}

    def __len__(self) -> int:
        return len(self._messages)

    def __bool__(self) -> bool:
        return bool(self._messages)

    @checked
    def append(self, message: Mapping[str, Any]) -> None:
        """Add a message."""
        self._messages.append(dict(message))

    def pop(self) -> Message:
        """Remove the last message and return it.

        Raises:
            IndexError: the history is empty.
        """
        return self._messages.pop()

    def clear(self) -> None:
        """Forget messages, tools and extra context."""
        self._messages, self._tools, self._extra_context = [], [], {}

    def get_messages(self) -> list[Message]:
        """Return a copy of the messages."""
        return copy.deepcopy(self._messages)

    @checked
    def set_messages(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """Replace the messages."""
        self._messages = [dict(message) for message in messages]

    def get_tools(self) -> list[Any]:
        """Return a copy of the tools."""
        return copy.deepcopy(self._tools)

    @checked
    def set_tools(self, tools: Iterable[Any]) -> None:
        """Set the template's variable ``tools``."""
        self._tools = list(tools)

    def get_extra_context(self) -> dict[str, Any]:
        """Return a copy of the extra context."""
        return copy.deepcopy(self._extra_context)

    @checked
    def set_extra_context(self, extra_context: Mapping[str, Any]) -> None:
        """Set further template variables, e.g. ``{"enable_thinking": False}``."""
        self._extra_context = dict(extra_context)
