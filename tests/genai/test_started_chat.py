"""Chat that a pipeline keeps: its warnings, and its system message."""

from __future__ import annotations

import pytest

from genai_layer import PromptError
from genai_layer.chat_history import ChatHistory
from genai_layer.exclusive import KeepsChat, with_turn


class Pipeline(KeepsChat):
    @property
    def messages(self) -> list[dict[str, str]] | None:
        return None if self._chat is None else self._chat.get_messages()


def test_the_warning_names_the_callers_file() -> None:
    with pytest.warns(DeprecationWarning, match="start_chat is deprecated") as caught:
        Pipeline().start_chat()
    assert caught[0].filename == __file__


def test_a_chat_begins_with_the_system_message_and_ends() -> None:
    pipeline = Pipeline()
    with pytest.deprecated_call():
        pipeline.start_chat("Be brief.")
    assert pipeline.messages == [{"role": "system", "content": "Be brief."}]
    with pytest.deprecated_call():
        pipeline.finish_chat()
    assert pipeline.messages is None


def test_a_turn_leaves_the_chat_unchanged() -> None:
    chat = ChatHistory([{"role": "user", "content": "a"}])
    assert len(with_turn(chat, ["b"])) == 2
    assert len(chat) == 1
    with pytest.raises(PromptError, match="2 texts in a chat: pass one text per turn"):
        with_turn(chat, ["b", "c"])
