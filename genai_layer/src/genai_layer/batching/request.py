"""One prompt to generate from, its results, its state, and the caller's view of it.

A handle is usable from any thread. Ours: an error of the request is raised when its outputs are
read.

Source: openvino_genai.GenerationHandle and GenerationStatus,
docs/reference/genai.md#continuous-batching.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from genai_layer.batching.outputs import GenerationOutput, Outputs, joined
from genai_layer.decoding.generated_sequence import GeneratedSequence, Limits
from genai_layer.decoding.language_model import TOKENS, Inputs
from genai_layer.decoding.reads import Drafter, Sink
from genai_layer.decoding.scored_prompt import PromptScores
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.decoding.truncation import Truncation
from genai_layer.errors import GenAIUsageError
from genai_layer.generation_config import GenerationConfig
from genai_layer.named_enum import NamedEnum
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.prompt_limits import texts_side_by_side
from genai_layer.results import GenerationFinishReason
from genai_layer.sampling.processors import Constraint
from genai_layer.streamers import StreamingStatus
from genai_layer.vision.results import VLMPerfMetrics


class GenerationStatus(NamedEnum):
    """State of a request."""

    RUNNING = 0
    """The request waits, or generates."""
    FINISHED = 1
    IGNORED = 2
    """The cache was full, or the request failed."""
    CANCEL = 3
    """The caller or the streamer cancelled the request; a chat drops the turn."""
    STOP = 4
    """The caller or the streamer stopped the request."""


_OF_STREAMER = {
    StreamingStatus.CANCEL: GenerationStatus.CANCEL,
    StreamingStatus.STOP: GenerationStatus.STOP,
    StreamingStatus.TOOL_CALL_STOP: GenerationStatus.STOP,
}


def status_of(texts: list[GeneratedSequence]) -> GenerationStatus:
    """Return the state of a request whose texts are complete."""
    if any(text.finish_reason is GenerationFinishReason.CAPACITY for text in texts):
        return GenerationStatus.IGNORED
    return _OF_STREAMER.get(texts[0].status, GenerationStatus.FINISHED)


class Stream:
    """State and outputs of a request, which its handle and the pipeline share."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._outputs = deque[Outputs]()
        self.status = GenerationStatus.RUNNING
        self.metrics: PerfMetrics | None = None
        """Metrics of the request, once it has ended."""
        self.error: Exception | None = None
        """Error that ended the request."""
        self.begun: float | None = None
        """Time at which the request got a place, of ``time.monotonic``; None before."""
        self.cached_tokens = 0
        """Tokens of the prompt that were stored already, once the request has ended."""

    @property
    def dropped(self) -> bool:
        """True if the request was stopped or cancelled."""
        return self.status in (GenerationStatus.STOP, GenerationStatus.CANCEL)

    @property
    def readable(self) -> bool:
        """True if ``pull`` returns outputs, or raises the request's error."""
        return bool(self._outputs or self.error)

    def push(self, outputs: Outputs) -> None:
        """Add the outputs of a step."""
        with self._changed:
            self._outputs.append(outputs)
            self._changed.notify_all()

    def end(
        self, status: GenerationStatus, metrics: PerfMetrics, error: Exception | None = None
    ) -> None:
        """End the request; its state stays if it was stopped or cancelled."""
        with self._changed:
            self.metrics, self.error = metrics, error
            if self.status is GenerationStatus.RUNNING:
                self.status = status
            self._changed.notify_all()

    def drop(self, status: GenerationStatus) -> None:
        """Stop or cancel the request; its next step does not take place."""
        with self._changed:
            self.status = status
            self._changed.notify_all()

    def pull(self) -> Outputs:
        """Return the outputs of a step; wait for them while the request runs.

        Returns:
            The outputs; none if the request has ended.

        Raises:
            Exception: the error that ended the request.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self.readable or self.status is not GenerationStatus.RUNNING
            )
            if self._outputs:
                return self._outputs.popleft()
            if self.error is not None:
                raise self.error
            return {}


class GenerationHandle:
    """Handle of a request; the request is stopped when its handle is deleted.

    Args:
        stream: the request's state.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        weakref.finalize(self, stream.drop, GenerationStatus.STOP).atexit = False

    def get_status(self) -> GenerationStatus:
        """Return the state of the request."""
        return self._stream.status

    def has_begun(self) -> bool:
        """Return whether the request has left the queue. Ours."""
        return self._stream.begun is not None

    def get_begin_time(self) -> float | None:
        """Return when the request left the queue, by ``time.monotonic``; None before. Ours."""
        return self._stream.begun

    def get_cached_tokens(self) -> int:
        """Return the tokens of the prompt that were stored already; 0 before the end. Ours."""
        return self._stream.cached_tokens

    def can_read(self) -> bool:
        """Return whether there are outputs to read, or an error to raise."""
        return not self._stream.dropped and self._stream.readable

    def read(self) -> Outputs:
        """Return the outputs of the first step that is not read yet, by number of the sequence.

        If there are none and the request runs, wait until another thread has run a step.

        Raises:
            GenAIUsageError: the request was stopped or cancelled.
            GenAIError: the error that ended the request.
        """
        self._check_kept()
        return self._stream.pull()

    def read_all(self) -> list[GenerationOutput]:
        """Return all outputs that are not read yet, joined by sequence, highest score first.

        While the request runs, wait until other threads have run its steps. Errors as ``read``.
        """
        self._check_kept()
        steps: list[Outputs] = []
        while self._stream.status is GenerationStatus.RUNNING or self.can_read():
            steps.append(self._stream.pull())
        return sorted(joined(steps).values(), key=lambda output: -output.score)

    def stop(self, finish_reason: GenerationFinishReason = GenerationFinishReason.STOP) -> None:
        """End the request; its outputs cannot be read any more.

        Args:
            finish_reason: without effect, as there are no outputs that would have the reason.
        """
        del finish_reason
        self._stream.drop(GenerationStatus.STOP)

    def cancel(self) -> None:
        """End the request; its outputs cannot be read any more."""
        self._stream.drop(GenerationStatus.CANCEL)

    def get_perf_metrics(self) -> PerfMetrics:
        """Return the durations of the request.

        Raises:
            GenAIUsageError: the request has not ended.
        """
        if self._stream.metrics is None:
            raise GenAIUsageError("metrics: the request has not ended; run steps until it has")
        return self._stream.metrics

    def get_vlm_perf_metrics(self) -> VLMPerfMetrics:
        """Return the durations of a request to a model of images.

        Raises:
            GenAIUsageError: the request has not ended, or the model reads no images.
        """
        metrics = self.get_perf_metrics()
        if not isinstance(metrics, VLMPerfMetrics):
            raise GenAIUsageError("metrics: the model reads no images; call get_perf_metrics")
        return metrics

    def _check_kept(self) -> None:
        if self._stream.dropped:
            raise GenAIUsageError(
                "the request was stopped or cancelled; read its outputs before that"
            )


def no_drafter() -> Drafter | None:
    """Return no source of candidates."""
    return None


@dataclass(slots=True, eq=False)
class Request:
    """A prompt that waits, generates, or has ended."""

    number: int | None
    """Number that the caller gave; None for prompts of ``generate``."""
    prompt: list[int]
    config: GenerationConfig
    """Validated parameters."""
    limits: Limits
    sink: Sink
    metrics: PerfMetrics
    began: Stopwatch
    inputs: Inputs = TOKENS
    """Inputs of the language model."""
    drafter: Callable[[], Drafter | None] = no_drafter
    """Makes the source of candidates, once the request runs."""
    constraint: Constraint | None = None
    """Limits the tokens of a text."""
    truncation: Truncation | None = None
    """Rule for a full cache; None if the runtime's own applies."""
    warn: Callable[[], None] = lambda: None
    """Logs, when the prompt is about to be read, the messages that it leaves out."""
    scores: PromptScores | None = None
    """Scores of the prompt's tokens, which begin the outputs; None if they are not requested."""
    stream: Stream = field(default_factory=Stream)
    texts: list[GeneratedSequence] = field(default_factory=list[GeneratedSequence])
    """Complete texts, highest score first."""

    @property
    def sequences(self) -> int:
        """Number of sequences that run side by side."""
        return texts_side_by_side(self.config)
