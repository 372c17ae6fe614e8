"""How words reach the caller while they are generated.

Source: openvino_genai, fact sheet genai §a.5. Ours: an exception in a callback surfaces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Protocol

from genai_layer.detokenizer import Detokenizer
from genai_layer.errors import ConfigError


class StreamingStatus(IntEnum):
    """What a streamer wants."""

    RUNNING = 0
    STOP = 1
    """End; what was said is kept."""
    CANCEL = 2
    """End; in a chat the turn is dropped."""
    TOOL_CALL_STOP = 3
    """End, as a tool is to be called."""


Answer = StreamingStatus | bool | int | None
"""What a callback may return: None and False go on, True stops."""


class Decodes(Protocol):
    """What turns ids into text: a Tokenizer."""

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Give the text of ids."""
        ...


def read_status(answer: Answer) -> StreamingStatus:
    """Understand what a callback returned.

    Raises:
        ConfigError: it is no status.
    """
    if answer is None:
        return StreamingStatus.RUNNING
    if not isinstance(answer, int):  # pyright: ignore[reportUnnecessaryIsInstance] (users err)
        raise ConfigError(f"a streamer returned {answer!r}; return a StreamingStatus, bool or None")
    known = {int(status) for status in StreamingStatus}
    return StreamingStatus(answer) if int(answer) in known else StreamingStatus.STOP


class StreamerBase:
    """Receives tokens; derive from it and define ``write`` and, if needed, ``end``."""

    def write(self, token: int | Sequence[int]) -> Answer:
        """Take one token, or several that came together."""
        raise NotImplementedError

    def end(self) -> None:
        """The generation is over."""


class TextStreamer(StreamerBase):
    """Turns tokens into text and hands it to a callback, never half a character.

    Args:
        tokenizer: decodes.
        callback: gets pieces of text; the pieces joined are the text of the tokens.
    """

    def __init__(self, tokenizer: Decodes, callback: Callable[[str], Answer]) -> None:
        self._tokenizer = tokenizer
        self._callback = callback
        self._detokenizer = Detokenizer(tokenizer.decode)

    def write(self, token: int | Sequence[int]) -> Answer:
        """Take tokens; calls back if they complete a piece of text."""
        status = StreamingStatus.RUNNING
        for one in (token,) if isinstance(token, int) else token:
            status = max(status, read_status(self.write_text(self._detokenizer.add(one))))
        return status

    def write_text(self, text: str) -> Answer:
        """Take text that is decoded already, as pipelines do; calls back unless it is empty."""
        return self._callback(text) if text else StreamingStatus.RUNNING

    def end(self) -> None:
        """Hand over what is left, and be ready for another generation."""
        rest = self._detokenizer.flush()
        if rest:
            self._callback(rest)
        self._detokenizer = Detokenizer(self._tokenizer.decode)
