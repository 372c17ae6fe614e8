"""Streamers: callbacks that receive text or tokens during a generation.

Source: openvino_genai, docs/reference/genai.md#streamers. Ours: an exception in a callback is
raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from genai_layer.checked import checked
from genai_layer.detokenizer import Decodes as Decodes
from genai_layer.detokenizer import Detokenizer, TextDecoder
from genai_layer.errors import ConfigError
from genai_layer.named_enum import NamedEnum


class StreamingStatus(NamedEnum):
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

Tokens = int | Iterable[int]
"""One token, or several tokens together."""

_SKIP = "skip_special_tokens"


def read_status(answer: Answer) -> StreamingStatus:
    """Convert the return value of a callable or of ``write``; other integers stop.

    Raises:
        ConfigError: the value is not a status.
    """
    if isinstance(answer, StreamingStatus):
        return answer
    if answer is None:
        return StreamingStatus.RUNNING
    if not isinstance(answer, int | np.integer | np.bool_) or answer < 0:  # pyright: ignore[reportUnnecessaryIsInstance] (users err)
        raise _not_a_status(answer)
    number = int(answer)
    return StreamingStatus(number) if number in _STATUSES else StreamingStatus.STOP


def read_flag(answer: Answer) -> StreamingStatus:
    """Convert the return value of a TextStreamer's callback; any number but 0 stops.

    Raises:
        ConfigError: the value is neither a status nor a number.
    """
    if answer is None or isinstance(answer, StreamingStatus):
        return read_status(answer)
    if not isinstance(answer, int | float | np.number | np.bool_):  # pyright: ignore[reportUnnecessaryIsInstance] (users err)
        raise _not_a_status(answer)
    return StreamingStatus.STOP if answer else StreamingStatus.RUNNING


def _not_a_status(answer: object) -> ConfigError:
    return ConfigError(f"a streamer returned {answer!r}; return a StreamingStatus, bool or None")


_STATUSES = frozenset(map(int, StreamingStatus))


class StreamerBase:
    """Receiver of tokens; a subclass defines ``write`` and, if needed, ``end``."""

    def write(self, token: Any) -> Answer:
        """Receive the list of new tokens; return a status to continue or to end."""
        raise NotImplementedError(f"{type(self).__name__} has no method write(token); define it")

    def end(self) -> None:
        """Receive the end of the generation."""


class TextStreamer(StreamerBase):
    """Streamer that decodes tokens and passes complete characters to a callback.

    Args:
        tokenizer: decodes the tokens.
        callback: receives texts; joined they are the text of the tokens.
        detokenization_params: ``{"skip_special_tokens": False}`` to keep special tokens.

    Raises:
        ConfigError: a parameter is not supported.
    """

    @checked
    def __init__(
        self,
        tokenizer: Decodes,
        callback: Callable[[str], Answer],
        detokenization_params: Mapping[str, Any] | None = None,
    ) -> None:
        self._skip = _skips_special_tokens(detokenization_params or {})
        self._decode = TextDecoder(tokenizer, self._skip)
        self._callback = callback
        self._detokenizer = Detokenizer(self._decode)

    @property
    def takes_text(self) -> bool:
        """True if a pipeline may pass its own text to ``write_text``, instead of tokens."""
        return self._skip and type(self).write is TextStreamer.write

    @checked
    def write(self, token: Tokens) -> StreamingStatus:
        """Receive one token or several; call back if they complete some text.

        Raises:
            TypeError: a token is not an integer.
        """
        tokens = token if isinstance(token, Iterable) else (token,)
        return self.write_text("".join([self._detokenizer.add(one) for one in tokens]))

    @checked
    def write_text(self, text: str, tokens: Sequence[int] = ()) -> StreamingStatus:
        """Receive text that a pipeline has decoded; call back unless it is empty."""
        del tokens
        return read_flag(self._callback(text)) if text else StreamingStatus.RUNNING

    def end(self) -> None:
        """Pass on the remaining text, and prepare for another generation."""
        rest = self._detokenizer.flush()
        if rest:
            self._callback(rest)
        self._detokenizer = Detokenizer(self._decode)


def _skips_special_tokens(params: Mapping[str, Any]) -> bool:
    """Read a TextStreamer's parameters.

    Raises:
        ConfigError: a parameter is not supported.
    """
    for name, value in params.items():
        if name != _SKIP:
            raise ConfigError(f"detokenization_params: {name!r} is not supported; only {_SKIP} is")
        if not isinstance(value, bool):
            raise ConfigError(f"{_SKIP} = {value!r}: must be True or False")
    return params.get(_SKIP, True)
