"""Request that was accepted: the thread of the steps fills it, the event loop reads it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from genai_layer.batching.outputs import GenerationOutput, Outputs
from genai_layer.batching.request import GenerationHandle, GenerationStatus
from genai_layer.results import GenerationFinishReason
from genai_layer.serve.engine.contract import Chunk
from genai_layer.serve.engine.times import RequestTimes
from genai_layer.serve.errors import ServeError, SlowReader

MOST_CHUNKS = 1024
"""Chunks that may wait for their reader."""

_REASONS = {
    GenerationFinishReason.STOP: "stop",
    GenerationFinishReason.TOOL_CALL: "stop",
    GenerationFinishReason.LENGTH: "length",
    GenerationFinishReason.CAPACITY: "length",
}


class RunningRequest:
    """Accepted request. Iterate over it once; cancel it in a ``finally``, whatever happens.

    Args:
        handle: handle of the request in the pipeline.
        prompt_tokens: tokens of the prompt.
        times: notes the request's times.
    """

    def __init__(self, handle: GenerationHandle, prompt_tokens: int, times: RequestTimes) -> None:
        self.prompt_tokens = prompt_tokens
        self.handle = handle
        self._times = times
        self._on_end: Callable[[], None] | None = None
        self._chunks = deque[Chunk]()
        self._error: Exception | None = None
        self._over = False
        """True once no chunk follows those in ``_chunks``."""
        self._left = False
        """True once no step works for the request."""
        self._changed = asyncio.Event()
        self._reason = "abort"

    @property
    def cached_tokens(self) -> int:
        """Number of the prompt's tokens that were stored, once the request has ended."""
        return self.handle.get_cached_tokens()

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        """Iterate over the chunks; several sequences arrive when all are complete.

        Raises:
            ServeError: the request timed out, its reader was too slow, or the server shuts down.
            GenAIError: the generation failed.
        """
        try:
            while True:
                while self._chunks:
                    yield self._chunks.popleft()
                if self._over:
                    break
                self._changed.clear()
                await self._changed.wait()
            if self._error is not None:
                raise self._error
        finally:
            self.cancel()

    @property
    def completed(self) -> bool:
        """True if the request has ended without an error, and was not cancelled."""
        return self._reason in ("stop", "length")

    def on_end(self, call: Callable[[], None]) -> None:
        """Call back once, in the event loop's thread, when no step works for the request."""
        self._on_end = call

    def cancel(self) -> None:
        """End the request before its next step; without effect if it has ended."""
        self._finish(None)

    def fail(self, error: ServeError) -> None:
        """End the request with an error; without effect if it has ended."""
        self._finish(error)

    def _finish(self, error: Exception | None) -> None:
        if not self._over:
            self._over, self._error = True, error
            self.handle.cancel()
            self._changed.set()

    def collect(self) -> bool:
        """Take the outputs of the last step; called in the thread of the steps.

        Returns:
            Whether further steps work for the request.
        """
        begun = self.handle.get_begin_time()
        if begun is not None:
            self._times.note_begin(begun)
        try:
            while not self._over and self.handle.can_read():
                self._take(self.handle.read())
        except Exception as error:  # whatever it is, the reader has to learn of it
            self.break_off(error)
        running = not self._over and self.handle.get_status() is GenerationStatus.RUNNING
        if not running:
            self._over = self._left = True
            self._times.note_end(self._reason, self.handle.get_cached_tokens())
        return running

    def break_off(self, error: Exception) -> None:
        """End the request with an error; called in the thread of the steps."""
        if not self._over:  # else it was cancelled in the meantime
            self._over, self._error, self._reason = True, error, "error"
            self.handle.cancel()

    def wake(self) -> None:
        """Wake the reader; called in the event loop's thread after ``collect``."""
        self._changed.set()
        call = self._on_end
        if self._left and call is not None:
            self._on_end = None
            call()

    def _take(self, outputs: Outputs) -> None:
        """Append the outputs of a step to those that wait for their reader."""
        self._times.note_tokens(
            sum(len(one.generated_ids) - one.echoed for one in outputs.values())
        )
        self._chunks.extend(_chunk(number, one) for number, one in outputs.items())
        for one in outputs.values():
            self._reason = _REASONS.get(_reason_of(one), self._reason)
        if len(self._chunks) > MOST_CHUNKS:
            self.break_off(
                SlowReader(
                    f"the client has not read the last {MOST_CHUNKS} parts of the answer; read "
                    "faster, or request the answer without streaming"
                )
            )


def _reason_of(output: GenerationOutput) -> GenerationFinishReason:
    """Return the reason for the end; an echo alone, which has none, ends at its limit of 0."""
    none = output.finish_reason is GenerationFinishReason.NONE
    alone = 0 < output.echoed == len(output.generated_ids)
    return GenerationFinishReason.LENGTH if none and alone else output.finish_reason


def _chunk(number: int, output: GenerationOutput) -> Chunk:
    reason = _reason_of(output)
    return Chunk(
        number,
        tuple(output.generated_ids),
        tuple(output.generated_log_probs),
        output.text,
        None if reason is GenerationFinishReason.NONE else reason,
        tuple(output.alternatives),
        output.echoed,
    )
