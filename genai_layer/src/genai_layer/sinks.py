"""Where a generation's text goes, by the kind of streamer that the caller gave."""

from __future__ import annotations

from collections.abc import Callable

from genai_layer.errors import ConfigError
from genai_layer.generation import Sink
from genai_layer.streamers import (
    Answer,
    StreamerBase,
    StreamingStatus,
    TextStreamer,
    read_status,
)

Streamer = StreamerBase | Callable[[str], Answer] | None


class NoSink:
    """Nobody listens."""

    def write(self, token: int, text: str) -> StreamingStatus:
        """Go on."""
        del token, text
        return StreamingStatus.RUNNING

    def end(self, text: str) -> None:
        """Nothing to do."""
        del text


class TextSink:
    """Hands text to a callable.

    Args:
        callback: gets pieces that are not empty; joined they are the result's text.
        end: called when the generation is over.
    """

    def __init__(self, callback: Callable[[str], Answer], end: Callable[[], None]) -> None:
        self._callback = callback
        self._end = end

    def write(self, token: int, text: str) -> StreamingStatus:
        """Call back if there is text."""
        del token
        return read_status(self._callback(text)) if text else StreamingStatus.RUNNING

    def end(self, text: str) -> None:
        """Call back for what is left."""
        if text:
            self._callback(text)
        self._end()


class TokenSink:
    """Hands tokens to a StreamerBase.

    Args:
        streamer: gets one token at a time.
        hold: whether to hold tokens back until their text is known to belong to the result; those
            of an excluded stop string are then never handed on.
    """

    def __init__(self, streamer: StreamerBase, hold: bool) -> None:
        self._streamer = streamer
        self._hold = hold
        self._held: list[int] = []

    def write(self, token: int, text: str) -> StreamingStatus:
        """Hand tokens on."""
        self._held.append(token)
        if self._hold and not text:
            return StreamingStatus.RUNNING
        return self._release()

    def end(self, text: str) -> None:
        """Hand on what is left, if it has text."""
        if text:
            self._release()
        self._streamer.end()

    def _release(self) -> StreamingStatus:
        status = StreamingStatus.RUNNING
        held, self._held = self._held, []
        for token in held:
            answer = self._streamer.write(token)
            if answer is None:
                raise TypeError("StreamerBase.write must return a StreamingStatus or a bool")
            status = max(status, read_status(answer))
        return status


def make_sink(streamer: Streamer, hold: bool) -> Sink:
    """Choose the sink for what a caller gave.

    Raises:
        ConfigError: it is no streamer.
    """
    if streamer is None:
        return NoSink()
    if isinstance(streamer, TextStreamer):
        return TextSink(streamer.write_text, streamer.end)
    if isinstance(streamer, StreamerBase):
        return TokenSink(streamer, hold)
    if callable(streamer):
        return TextSink(streamer, lambda: None)
    raise ConfigError(f"{streamer!r} is no streamer: give a callable or a StreamerBase")
