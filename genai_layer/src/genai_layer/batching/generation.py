"""A request that runs: one decoding method, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager

from genai_layer.abilities import Conversation
from genai_layer.batching.outputs import GenerationOutput, GrowingText, complete_outputs
from genai_layer.batching.request import GenerationStatus, Request, status_of
from genai_layer.batching.request_pool import RequestPool
from genai_layer.batching.slot_requests import SlotRows
from genai_layer.decoding.language_model import LanguageModel
from genai_layer.decoding.methods import start
from genai_layer.decoding.reads import Read, Task, advance
from genai_layer.decoding.scored_prompt import score_prompt
from genai_layer.decoding.stopwatch import TokenTimes
from genai_layer.decoding.stored_tokens import StoredTokens
from genai_layer.errors import RuntimeFailure, runtime_failures
from genai_layer.generation_config import UNSET
from genai_layer.sampling.processors import Logits
from genai_layer.speculation.perf_metrics import metrics_of_models


class Generation:
    """Generation in progress; an error ends it, and is raised where its outputs are read.

    Args:
        request: the prompt.
        pool: requests of the model.
        used: requests of the other generations.
        resting: number of requests that may keep tokens beside these.
        decode: returns the text of ids, without special tokens.

    Raises:
        RuntimeFailure: the runtime failed.
    """

    def __init__(
        self,
        request: Request,
        pool: RequestPool,
        used: Collection[StoredTokens],
        resting: int,
        decode: Callable[[list[int]], str],
    ) -> None:
        self.request = request
        self.ended = False
        self._pool = pool
        drafter = request.drafter()
        with runtime_failures():
            self.stored = pool.take(request.inputs.identities(request.prompt), used, resting)
        self._infer = self.stored.request
        raw = request.metrics.raw_metrics
        self._task = Task(
            prompt=request.prompt,
            config=request.config,
            limits=request.limits,
            model=LanguageModel(self.stored, raw, request.inputs),
            decode=decode,
            sink=request.sink,
            raw=raw,
            times=TokenTimes(raw, request.began),
            constraint=request.constraint,
            drafter=drafter,
            truncation=request.truncation,
        )
        self._decoding = start(self._task)
        if request.scores is not None:
            self._decoding = score_prompt(self._decoding, self._task, request.scores)
        self._read: Read | None = None
        self._submitted = False
        self._growing: GrowingText | None = None
        request.warn()
        request.stream.begun = time.monotonic()

    @property
    def conversations(self) -> Sequence[Conversation]:
        """Conversations of the runtime's batching, one for each sequence; none without one."""
        return self._infer.conversations if isinstance(self._infer, SlotRows) else ()

    def submit(self) -> None:
        """Submit the next tokens, unless those before are still being read."""
        with self._ending_on_error():
            if self._read is None:
                self._advance()
            if self.ended or self._submitted or self._read is None:
                return
            self._task.model.start(self._read.rows, self._read.past, self._read.sources)
            self._submitted = True
            if self._read.meanwhile is not None:
                self._read.meanwhile()

    @property
    def cache_usage(self) -> float:
        """Percentage of the cache that the tokens read so far use; 100 if the cache grows."""
        limits, read = self.request.limits, self._read
        if limits.capacity == UNSET or read is None:
            return 100.0
        # The last token is generated, but never stored.
        size = len(self.request.prompt) + limits.capacity - 1
        return 100 * (read.past + len(read.rows[0])) / size

    def proceed(self) -> None:
        """Choose the next tokens if the logits are ready, and pass the outputs on."""
        if self.ended or (isinstance(self._infer, SlotRows) and not self._infer.ready):
            return
        with self._ending_on_error():
            self._submitted = False
            self._advance(self._task.model.wait(1 if self._read is None else self._read.last))

    def drop(self) -> None:
        """End the generation, because the request was stopped or cancelled."""
        self._task.model.finish()
        self._end(self.request.stream.status)

    def _advance(self, logits: Logits | None = None) -> None:
        """Run the method up to the next tokens to read, or to its end."""
        stream, texts = self.request.stream, self._task.texts
        step = advance(self._decoding, logits)
        if isinstance(step, Read):
            self._read = step
        else:
            self.request.texts = step
        if texts and self._growing is None and self.request.sequences == 1:
            hold = bool(self.request.config.stop_strings)
            self._growing = GrowingText(texts[0], hold, self._prompt_output())
        growing, complete = self._growing, self.request.texts
        if growing is not None:
            outputs = growing.step()
        else:
            outputs = complete_outputs(complete, self._prompt_output())
        if outputs:
            stream.push(outputs)
        if complete:
            self._end(status_of(complete))

    def _cached_tokens(self) -> int:
        """Return the tokens of the prompt that the request, or the prefix cache, had."""
        shared = self._task.model.shared
        if shared == 0 and isinstance(self._infer, SlotRows):
            return self._infer.cached_tokens
        return shared or 0

    def _prompt_output(self) -> GenerationOutput:
        """Return the output of the prompt's tokens; empty unless they are scored."""
        scores, ids = self.request.scores, self.request.prompt
        if scores is None:
            return GenerationOutput()
        return GenerationOutput(
            ids, scores.log_probabilities, alternatives=scores.alternatives, echoed=len(ids)
        )

    @contextmanager
    def _ending_on_error(self) -> Generator[None]:
        try:
            yield
        except Exception as error:  # a streamer may raise any
            self._end(GenerationStatus.IGNORED, error)
        except BaseException:
            self._end(
                GenerationStatus.IGNORED,
                RuntimeFailure("the step that computed a token was interrupted; add it again"),
            )
            raise

    def _end(self, status: GenerationStatus, error: Exception | None = None) -> None:
        self.ended = True
        self._decoding.close()
        self.request.stream.cached_tokens = self._cached_tokens()
        if isinstance(self._infer, SlotRows):
            self._infer.rest()
        self._pool.give_back(self.stored)
        metrics = self.request.metrics
        metrics.num_input_tokens = len(self.request.prompt)
        metrics.num_generated_tokens = sum(metrics.raw_metrics.m_batch_sizes)
        metrics.raw_metrics.generate_durations.append(self.request.began.microseconds())
        metrics.by_model = metrics_of_models(metrics, [self._task.drafter])
        self.request.stream.end(status, metrics, error)
