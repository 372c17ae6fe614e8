"""Chat that a pipeline keeps between ``start_chat`` and ``finish_chat``.

Source: openvino_genai, docs/reference/genai.md#chat-history.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from genai_layer.chat_history import ChatHistory
from genai_layer.errors import PromptError
from genai_layer.exclusive import Exclusive, one_at_a_time


class KeepsChat(Exclusive):
    """Pipeline with a started chat, to which each generation adds a turn."""

    _chat: ChatHistory | None = None
    """The started chat; replaced as a whole after each turn."""

    @one_at_a_time
    def start_chat(self, system_message: str = "") -> None:
        """Begin a conversation: texts passed to ``generate`` become its turns."""
        _warn("start_chat")
        messages = [{"role": "system", "content": system_message}] if system_message else []
        self._chat = ChatHistory(messages)

    @one_at_a_time
    def finish_chat(self) -> None:
        """End and forget the conversation."""
        _warn("finish_chat")
        self._chat = None


def with_turn(chat: ChatHistory, texts: Sequence[str]) -> ChatHistory:
    """Return a chat with a user's turn added.

    Raises:
        PromptError: there are several texts.
    """
    if len(texts) != 1:
        raise PromptError(f"{len(texts)} texts in a chat: pass one text per turn")
    return ChatHistory([*chat.get_messages(), {"role": "user", "content": texts[0]}])


def _warn(name: str) -> None:
    """Warn that a method is deprecated; the warning names the method's caller."""
    # Above this function are the method, and the wrapper of ``one_at_a_time``.
    warnings.warn(
        f"{name} is deprecated, as in openvino_genai; pass a ChatHistory to generate",
        DeprecationWarning,
        stacklevel=4,
    )
