"""One text as it grows: its tokens, its text, and the reasons to end."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Self

from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.detokenizer import Detokenizer, StopStrings
from genai_layer.generation_config import GenerationConfig
from genai_layer.results import GenerationFinishReason
from genai_layer.sampling.candidates import Alternatives
from genai_layer.streamers import StreamingStatus

_REASONS = {
    StreamingStatus.STOP: GenerationFinishReason.STOP,
    StreamingStatus.CANCEL: GenerationFinishReason.NONE,
    StreamingStatus.TOOL_CALL_STOP: GenerationFinishReason.TOOL_CALL,
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a generation's length in tokens; the smaller one ends it."""

    max_new_tokens: int
    capacity: int
    """Tokens that the runtime can store after this prompt."""

    @property
    def tokens(self) -> int:
        """The smaller limit."""
        return min(self.max_new_tokens, self.capacity)


class GeneratedSequence:
    """Tokens after a prompt, and their text.

    Args:
        config: validated parameters.
        limits: limits of the length.
        decode: returns the text of ids, without special tokens.
    """

    def __init__(
        self, config: GenerationConfig, limits: Limits, decode: Callable[[list[int]], str]
    ) -> None:
        self.tokens: list[int] = []
        """Generated tokens, the stop token included."""
        self.echoed: list[int] = []
        """Tokens of the prompt that the result repeats."""
        self.text = ""
        self.score = 0.0
        self.log_probabilities: list[float] = []
        """Log-probability of each generated token, as the score counts it."""
        self.alternatives: list[Alternatives] = []
        """Likeliest tokens at each place; see Sampler.alternatives."""
        self.certain = 0
        """Number of tokens whose text certainly belongs to the result."""
        self.finish_reason = GenerationFinishReason.NONE
        self.status = StreamingStatus.RUNNING
        self.ended = limits.max_new_tokens == 0
        self.decoded = 0.0
        """Time of decoding, in microseconds."""
        self._limits = limits
        self._stops = frozenset[int]() if config.ignore_eos else config.stop_token_ids
        self._detokenizer = Detokenizer(decode)
        self._stop_strings = StopStrings(
            tuple(sorted(config.stop_strings)), config.include_stop_str_in_output
        )

    def echo(self, token: int) -> str:
        """Repeat a token of the prompt; return text that certainly belongs to the result."""
        self.echoed.append(token)
        text = self._detokenizer.add(token)
        self.text += text
        return text

    def add(self, token: int, score: float, alternatives: Alternatives = ()) -> str:
        """Add a token; return text that certainly belongs to the result.

        Args:
            token: the next id.
            score: sum of the log-probabilities, with the token's.
            alternatives: the likeliest tokens at its place.
        """
        watch = Stopwatch()
        self.tokens.append(token)
        self.log_probabilities.append(score - self.score)
        self.alternatives.append(alternatives)
        self.score = score
        stopped = token in self._stops
        text = self._detokenizer.add(token)
        if stopped:
            # A stop token ends the text before its stop strings are searched, as in openvino_genai.
            text = self._stop_strings.flush() + text
            self._stop_strings = StopStrings((), include=False)
        else:
            text = self._stop_strings.feed(text)
        self.text += text
        if text:
            self.certain = len(self.tokens)
        if stopped or self._stop_strings.found:
            self.end(GenerationFinishReason.STOP)
        elif len(self.tokens) >= self._limits.max_new_tokens:
            self.end(GenerationFinishReason.LENGTH)
        elif len(self.tokens) >= self._limits.capacity:
            self.end(GenerationFinishReason.CAPACITY)
        self.decoded += watch.microseconds()
        return text

    def end(self, reason: GenerationFinishReason) -> None:
        """End the text for a reason."""
        self.ended, self.finish_reason = True, reason

    def heed(self, status: StreamingStatus) -> None:
        """End the text if a streamer requests it; its reason precedes all others."""
        self.status = status
        if status is not StreamingStatus.RUNNING:
            self.end(_REASONS[status])

    def flush(self) -> str:
        """Complete the text; return its rest, which had been held back."""
        watch = Stopwatch()
        rest = self._stop_strings.feed(self._detokenizer.flush()) + self._stop_strings.flush()
        if self._stop_strings.found and self.status is StreamingStatus.RUNNING:
            self.finish_reason = GenerationFinishReason.STOP
        self.text += rest
        if rest or not self._stop_strings.found:
            self.certain = len(self.tokens)
        self.decoded += watch.microseconds()
        return rest

    def fork(self) -> Self:
        """Return a copy that grows on its own."""
        forked = copy(self)
        forked.tokens = list(self.tokens)
        forked.log_probabilities = list(self.log_probabilities)
        forked.alternatives = list(self.alternatives)
        forked._detokenizer = self._detokenizer.fork()
        forked._stop_strings = copy(self._stop_strings)
        return forked
