"""Streamers: callbacks that receive text or tokens during a generation.

Source: openvino_genai, docs/reference/genai.md#streamers. Ours: an exception in a callback is
raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Protocol

from genai_layer.detokenizer import Detokenizer
from genai_layer.errors import ConfigError


class StreamingStatus(IntEnum):
    """Request of a streamer to continue or to end the generation."""

    RUNNING = 0
    STOP = 1
    """End; the generated text is kept."""
    CANCEL = 2
    """End; a chat drops the turn."""
    TOOL_CALL_STOP = 3
    """End, because a tool is to be called."""


Answer = StreamingStatus | bool | int | None
"""Return value of a callback: None and False continue, True stops."""


class Decodes(Protocol):
    """Decoder from ids to text, e.g. a Tokenizer."""

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Return the text of ids."""
        ...


def read_status(answer: Answer) -> StreamingStatus:
    """Convert the return value of a callback to a status.

    Raises:
        ConfigError: the value is not a status.
    """
    if answer is None:
        return StreamingStatus.RUNNING
    if not isinstance(answer, int):  # pyright: ignore[reportUnnecessaryIsInstance] (users err)
        raise ConfigError(f"a streamer returned {answer!r}; return a StreamingStatus, bool or None")
    known = {int(status) for status in StreamingStatus}
    return StreamingStatus(answer) if int(answer) in known else StreamingStatus.STOP


class StreamerBase:
    """Receiver of tokens; a subclass defines ``write`` and, if needed, ``end``."""

    def write(self, token: int | Sequence[int]) -> Answer:
        """Receive one token, or several tokens together."""
        raise NotImplementedError

    def end(self) -> None:
        """Receive the end of the generation."""


class TextStreamer(StreamerBase):
    """Streamer that decodes tokens and passes complete characters to a callback.

    Args:
        tokenizer: decodes the tokens.
        callback: receives texts; joined they are the text of the tokens.
    """

    def __init__(self, tokenizer: Decodes, callback: Callable[[str], Answer]) -> None:
        self._tokenizer = tokenizer
        self._callback = callback
        self._detokenizer = Detokenizer(tokenizer.decode)

    def write(self, token: int | Sequence[int]) -> Answer:
        """Receive tokens; call back if they complete some text."""
        status = StreamingStatus.RUNNING
        for one in (token,) if isinstance(token, int) else token:
            status = max(status, read_status(self.write_text(self._detokenizer.add(one))))
        return status

    def write_text(self, text: str) -> Answer:
        """Receive text that a pipeline has decoded; call back unless it is empty."""
        return self._callback(text) if text else StreamingStatus.RUNNING

    def end(self) -> None:
        """Pass on the remaining text, and prepare for another generation."""
        rest = self._detokenizer.flush()
        if rest:
            self._callback(rest)
        self._detokenizer = Detokenizer(self._tokenizer.decode)
