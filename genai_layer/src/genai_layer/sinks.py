"""Sinks that pass a generation's text or tokens to a streamer."""

from __future__ import annotations

from collections.abc import Callable

from genai_layer.decoding.reads import Sink
from genai_layer.errors import ConfigError
from genai_layer.generation_config import GenerationConfig
from genai_layer.streamers import (
    Answer,
    StreamerBase,
    StreamingStatus,
    TextStreamer,
    read_status,
)

Streamer = StreamerBase | Callable[[str], Answer] | None


class NoSink:
    """Sink without a streamer."""

    def write(self, token: int, text: str) -> StreamingStatus:
        """Return that the generation continues."""
        del token, text
        return StreamingStatus.RUNNING

    def end(self, text: str) -> None:
        """Drop the remaining text."""
        del text


class TextSink:
    """Sink that passes text to a callable.

    Args:
        callback: receives non-empty texts; joined they are the result's text.
    """

    def __init__(self, callback: Callable[[str], Answer]) -> None:
        self._callback = callback

    def write(self, token: int, text: str) -> StreamingStatus:
        """Call back if the text is not empty."""
        del token
        return read_status(self._callback(text)) if text else StreamingStatus.RUNNING

    def end(self, text: str) -> None:
        """Call back for the remaining text."""
        if text:
            self._callback(text)


class DecodedSink:
    """Sink that passes text and its tokens to a TextStreamer, which then need not decode them.

    Args:
        streamer: receives every token, and often no text with it.
    """

    def __init__(self, streamer: TextStreamer) -> None:
        self._streamer = streamer

    def write(self, token: int, text: str) -> StreamingStatus:
        """Pass a token and its text on."""
        return self._streamer.write_text(text, [token])

    def end(self, text: str) -> None:
        """Pass the remaining text on."""
        self._streamer.write_text(text)
        self._streamer.end()


class TokenSink:
    """Sink that passes tokens to a StreamerBase.

    Args:
        streamer: receives lists, of one token unless tokens were held back.
        hold: True to hold tokens back until their text certainly belongs to the result; tokens of
            an excluded stop string are then never passed on.
    """

    def __init__(self, streamer: StreamerBase, hold: bool) -> None:
        self._streamer = streamer
        self._hold = hold
        self._held: list[int] = []

    def write(self, token: int, text: str) -> StreamingStatus:
        """Pass tokens on."""
        self._held.append(token)
        if self._hold and not text:
            return StreamingStatus.RUNNING
        return self._release()

    def end(self, text: str) -> None:
        """Pass the held tokens on if the remaining text is not empty."""
        if text and self._held:
            self._release()
        self._streamer.end()

    def _release(self) -> StreamingStatus:
        held, self._held = self._held, []
        answer = self._streamer.write(held)
        if answer is None:
            raise TypeError("StreamerBase.write must return a StreamingStatus or a bool")
        return read_status(answer)


def make_sink(streamer: Streamer, hold: bool) -> Sink:
    """Return the sink for a streamer.

    Args:
        streamer: the streamer, or None.
        hold: see ``TokenSink``.
    """
    if streamer is None:
        return NoSink()
    if isinstance(streamer, TextStreamer) and streamer.takes_text:
        return DecodedSink(streamer)
    if isinstance(streamer, StreamerBase):
        return TokenSink(streamer, hold)
    return TextSink(streamer)


def sink_of_one_text(streamer: Streamer, config: GenerationConfig, prompts: int) -> Sink:
    """Return the sink for the text of a generation.

    Args:
        streamer: the streamer, or None.
        config: parameters of the generation.
        prompts: number of prompts.

    Raises:
        ConfigError: there are several texts.
    """
    for several, remedy in (
        (prompts > 1, f"{prompts} prompts are given; pass one"),
        (config.num_return_sequences > 1, "set num_return_sequences to 1"),
        (config.is_beam_search(), "set num_beams to 1"),
    ):
        if several and streamer is not None:
            raise ConfigError(f"streamer: it receives the text of one sequence; {remedy}")
    return make_sink(streamer, hold=bool(config.stop_strings))
