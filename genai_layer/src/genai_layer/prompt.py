"""Prompts as the language model reads them, and as shorter ones that leave out whole turns."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache

from genai_layer.chat_history import ChatHistory, Message

_log = logging.getLogger(__name__)

Encode = Callable[[ChatHistory], list[int]]
"""Returns the ids of a chat, up to the beginning of the answer."""


class Prompt:
    """Ids that the model reads; without turns, nothing can be left out.

    Args:
        ids: the ids.
    """

    def __init__(self, ids: list[int]) -> None:
        self.ids = ids

    def within(self, room: int) -> Prompt:
        """Return the prompt with the fewest turns left out that has at most ``room`` tokens.

        If none is short enough, the shortest is returned.
        """
        del room
        return self

    @property
    def left_out(self) -> str:
        """Description of the messages that are left out; empty if there are none."""
        return ""

    def warn(self) -> None:
        """Log the messages that are left out, if any, of a prompt that is about to be read."""
        if self.left_out:
            _log.warning(
                "NPUW_LLM_ON_FULL = TRUNCATE: %s are left out of a prompt, which then has %d "
                "tokens",
                self.left_out,
                len(self.ids),
            )


class Chat(Prompt):
    """Prompt of a chat. System messages and the last turn always stay.

    Args:
        history: the complete chat.
        encode: encodes a chat.
        gone: number of turns that are left out, the oldest first.
    """

    def __init__(self, history: ChatHistory, encode: Encode, gone: int = 0) -> None:
        self._history, self._encode, self._gone = history, encode, gone
        kept = _without(history, gone)
        self._count = len(history) - len(kept)
        super().__init__(encode(kept))

    def within(self, room: int) -> Prompt:
        """Return the prompt with the fewest turns left out; see ``Prompt.within``.

        Raises:
            TemplateError: the chat template rejects the shorter chat.
        """
        turns = {turn for turn in _turns(self._history.get_messages()) if turn is not None}
        most = max(len(turns) - 1, self._gone)
        if len(self.ids) <= room or self._gone == most:
            return self

        @cache
        def shorter(gone: int) -> Chat:
            return Chat(self._history, self._encode, gone)

        fewer = range(self._gone + 1, most)
        place = bisect_left(fewer, True, key=lambda gone: len(shorter(gone).ids) <= room)
        return shorter(fewer.start + place)

    @property
    def left_out(self) -> str:
        """Number of messages that are left out."""
        return f"the oldest {self._count} of {len(self._history)} messages" if self._count else ""


def _turns(messages: Sequence[Message]) -> list[int | None]:
    """Return the number of each message's turn; None for system messages, which have no turn.

    A turn begins with a user's messages, and contains the answers, calls and results after them.
    """
    turns, turn, last = list[int | None](), -1, ""
    for message in messages:
        role = str(message.get("role"))
        if role in _SYSTEM:
            turns.append(None)
            continue
        if turn < 0 or (role == _USER and last != _USER):
            turn += 1
        turns.append(turn)
        last = role
    return turns


_SYSTEM = ("system", "developer")
_USER = "user"


def _without(history: ChatHistory, gone: int) -> ChatHistory:
    """Return a chat without its oldest turns."""
    messages = history.get_messages()
    turns = zip(messages, _turns(messages), strict=True)
    kept = ChatHistory(message for message, turn in turns if turn is None or turn >= gone)
    kept.set_tools(history.get_tools())
    kept.set_extra_context(history.get_extra_context())
    return kept
