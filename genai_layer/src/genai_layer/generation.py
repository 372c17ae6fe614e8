"""Token loop of one generation: infer, sample, decode, check for the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from genai_layer.detokenizer import Detokenizer, StopStrings
from genai_layer.errors import RuntimeFailure
from genai_layer.generation_config import GenerationConfig
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.results import GenerationFinishReason
from genai_layer.runtime import InferRequest, last_logits
from genai_layer.sampling.processors import Logits, TokenHistory
from genai_layer.sampling.sampler import Sampler
from genai_layer.streamers import StreamingStatus

_REASONS = {
    StreamingStatus.STOP: GenerationFinishReason.STOP,
    StreamingStatus.CANCEL: GenerationFinishReason.NONE,
    StreamingStatus.TOOL_CALL_STOP: GenerationFinishReason.TOOL_CALL,
}


class Sink(Protocol):
    """Receiver of a generation's tokens and text."""

    def write(self, token: int, text: str) -> StreamingStatus:
        """Receive a token, and text that certainly belongs to the result."""
        ...

    def end(self, text: str) -> None:
        """Receive the remaining text; the generation has ended."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a generation's length in tokens; the smaller one ends it."""

    max_new_tokens: int
    capacity: int
    """Tokens that the runtime can store after this prompt."""


@dataclass(slots=True)
class Generated:
    """Result of a generation."""

    tokens: list[int] = field(default_factory=list[int])
    text: str = ""
    score: float = 0.0
    finish_reason: GenerationFinishReason = GenerationFinishReason.NONE
    status: StreamingStatus = StreamingStatus.RUNNING


class Stopwatch:
    """Time since its creation, in microseconds."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def microseconds(self) -> float:
        """Return the elapsed time."""
        return (time.perf_counter() - self._began) * 1e6


class Generation:
    """One generation.

    Args:
        request: the request to run; its state is reset first.
        config: validated parameters.
        limits: limits of the length.
        decode: returns the text of ids, without special tokens.
        sink: receives tokens and text as they are generated.
        raw: collects the measurements.
    """

    def __init__(
        self,
        request: InferRequest,
        config: GenerationConfig,
        limits: Limits,
        decode: Callable[[list[int]], str],
        sink: Sink,
        raw: RawPerfMetrics,
    ) -> None:
        self._request = request
        self._config = config
        self._limits = limits
        self._sink = sink
        self._raw = raw
        self._detokenizer = Detokenizer(decode)
        stops = tuple(sorted(config.stop_strings))
        self._stop_strings = StopStrings(stops, config.include_stop_str_in_output)
        self._inferred = self._decoded = 0.0

    def run(self, prompt: list[int], began: Stopwatch) -> Generated:
        """Generate tokens after a prompt.

        Args:
            prompt: token ids.
            began: started when the caller began, for the time to the first token.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        sampler = Sampler(self._config)
        history = TokenHistory(prompt)
        result = Generated(history.generated)
        self._reset()
        logits = self._infer(prompt, 0)
        while True:
            token = self._sample(sampler, logits, history)
            history.generated.append(token)
            self._note_time(began)
            if self._take(token, result):
                break
            logits = self._infer([token], len(prompt) + len(history.generated) - 1)
        result.score = sampler.score
        self._finish(result)
        return result

    def _take(self, token: int, result: Generated) -> bool:
        """Decode a token, pass it to the sink, and return whether it was the last."""
        watch = Stopwatch()
        stopped = token in self._config.stop_token_ids and not self._config.ignore_eos
        # The text of a stop token is dropped, even if the tokenizer does not call it special.
        piece = "" if stopped else self._detokenizer.add(token)
        text = self._stop_strings.feed(piece)
        self._decoded += watch.microseconds()
        result.text += text
        result.status = self._sink.write(token, text)
        if result.status is not StreamingStatus.RUNNING:
            result.finish_reason = _REASONS[result.status]
        elif stopped or self._stop_strings.found:
            result.finish_reason = GenerationFinishReason.STOP
        elif len(result.tokens) >= self._limits.max_new_tokens:
            result.finish_reason = GenerationFinishReason.LENGTH
        elif len(result.tokens) >= self._limits.capacity:
            result.finish_reason = GenerationFinishReason.CAPACITY
        else:
            return False
        return True

    def _finish(self, result: Generated) -> None:
        watch = Stopwatch()
        rest = self._stop_strings.feed(self._detokenizer.flush()) + self._stop_strings.flush()
        if self._stop_strings.found and result.status is StreamingStatus.RUNNING:
            result.finish_reason = GenerationFinishReason.STOP
        self._decoded += watch.microseconds()
        result.text += rest
        self._sink.end(rest)
        self._raw.inference_durations.append(self._inferred)
        self._raw.detokenization_durations.append(self._decoded)

    def _reset(self) -> None:
        try:
            self._request.reset_state()
        except RuntimeError as error:
            raise RuntimeFailure(str(error)) from error

    def _infer(self, ids: list[int], past: int) -> Logits:
        """Run new tokens after ``past`` earlier ones; return the logits of the last token.

        Raises:
            RuntimeFailure: the runtime failed, or logits are NaN.
        """
        count = len(ids)
        watch = Stopwatch()
        try:
            self._request.infer(
                {
                    "input_ids": np.array([ids], np.int64),
                    "attention_mask": np.ones((1, past + count), np.int64),
                    "position_ids": np.arange(past, past + count, dtype=np.int64)[None],
                    "beam_idx": np.zeros(1, np.int32),
                }
            )
            logits = last_logits(self._request)
        except RuntimeError as error:
            raise RuntimeFailure(str(error)) from error
        _check_numbers(logits, past + count)
        took = watch.microseconds()
        self._inferred += took
        self._raw.token_infer_durations.append(took)
        return logits

    def _sample(self, sampler: Sampler, logits: Logits, history: TokenHistory) -> int:
        watch = Stopwatch()
        token = sampler.next_token(logits, history)
        self._raw.sampling_durations.append(watch.microseconds())
        return token

    def _note_time(self, began: Stopwatch) -> None:
        times, now = self._raw.m_new_token_times, time.perf_counter() * 1e3
        if times:
            self._raw.m_durations.append((now - times[-1]) * 1e3)
        else:
            self._raw.m_times_to_first_token.append(began.microseconds())
        times.append(now)
        self._raw.m_batch_sizes.append(1)


def _check_numbers(logits: Logits, tokens: int) -> None:
    """Reject NaN logits, from which sampling would choose the same token forever.

    A model with a position table returns NaN beyond the table, which a sliding cache can reach.

    Raises:
        RuntimeFailure: a logit is NaN.
    """
    if np.isnan(logits.max()):
        raise RuntimeFailure(
            f"the logits after {tokens} tokens are NaN; if the model has no positions that far, "
            "request fewer tokens, or set NPUW_LLM_ON_FULL=TRUNCATE, which keeps positions low"
        )
