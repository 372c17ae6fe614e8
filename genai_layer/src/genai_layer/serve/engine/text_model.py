"""Loaded language model: it checks requests, bounds its queue, and has them run."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from genai_layer.batching.pipeline import ContinuousBatchingPipeline
from genai_layer.batching.request import GenerationHandle
from genai_layer.chat_prompt import PromptEncoder
from genai_layer.errors import PromptTooLong
from genai_layer.generation_config import UNSET, GenerationConfig
from genai_layer.perf_metrics import PerfMetrics, RawPerfMetrics
from genai_layer.prompt import Prompt
from genai_layer.prompt_limits import fitted
from genai_layer.serve.engine.activity import Commons, timed_out
from genai_layer.serve.engine.running import RunningRequest
from genai_layer.serve.engine.stepper import Stepper
from genai_layer.serve.engine.times import CompletionRate, RequestTimes, check_queue
from genai_layer.serve.errors import BadRequest, TooLong
from genai_layer.serve.workers import Workers
from genai_layer.tokenizer import Tokenizer

T = TypeVar("T")

Added = tuple[GenerationHandle, int]
"""Handle of a request in the pipeline, and the tokens of its prompt."""


async def _added(adding: Coroutine[Any, Any, Added]) -> Added:
    """Return the request that is being added; if the client leaves, it ends once it is added."""
    task = asyncio.ensure_future(adding)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_cancel)
        raise


def _cancel(task: asyncio.Future[Added]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result()[0].cancel()


class ServedTextModel:
    """Language model of a server; its methods are called in the event loop's thread.

    Args:
        name: name by which clients request the model.
        device: the pipeline's.
        pipeline: the model, which nobody else uses.
        commons: parts of the server that all models share.
    """

    def __init__(
        self,
        name: str,
        device: str,
        pipeline: ContinuousBatchingPipeline,
        commons: Commons,
    ) -> None:
        self.name, self.device = name, device
        self.pipeline = pipeline
        self.changes = 0
        """Number of steps and of changes of the queue."""
        self.last_metrics: PerfMetrics | None = None
        """Durations of the last completed request."""
        self._limits, self._activity = commons.limits, commons.activity
        self._metrics = commons.metrics
        self._stepper = Stepper(pipeline, self._note_change)
        self._rate = CompletionRate()
        self._encoder = PromptEncoder(self.tokenizer, pipeline.get_lengths())
        self._workers = Workers()
        self._adding = 0
        """Requests whose prompts are read."""
        self._numbers = itertools.count()
        self._names: dict[int, str] = {}

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        return self.pipeline.get_tokenizer()

    @property
    def defaults(self) -> GenerationConfig:
        """Copy of the model's default parameters."""
        return self.pipeline.get_config()

    @property
    def max_model_len(self) -> int | None:
        """Tokens of prompt and answer together; None if the runtime has no limit."""
        lengths = self.pipeline.get_lengths()
        return None if lengths is None else lengths.max_prompt_len + lengths.min_response_len

    @property
    def queue(self) -> int:
        """Number of requests that wait for a place."""
        waiting = sum(not one.handle.has_begun() for one in self._stepper.followed)
        return waiting + self._adding

    @property
    def queue_limit(self) -> int:
        """Maximum number of requests that wait."""
        return self._limits.queue

    @property
    def max_tokens(self) -> int:
        """Maximum number of tokens in an answer."""
        return self._limits.max_tokens

    @property
    def running(self) -> int:
        """Number of requests that have a place."""
        return sum(one.handle.has_begun() for one in self._stepper.followed)

    @property
    def idle(self) -> bool:
        """True if no request waits or runs."""
        return not self._adding and not self._stepper.followed

    async def encode(self, size: int, encode: Callable[[PromptEncoder], T]) -> T:
        """Return the result of a function that encodes texts, in a thread; see ``Workers``.

        Args:
            size: characters of the texts.
            encode: receives the model's encoder.

        Raises:
            QueueFull, ShuttingDown: see ``submit``.
            TooLong: a text is too long.
            PromptError, TemplateError: see ``PromptEncoder``.
        """
        with self._place_in_queue():
            return await self._workers.run(size, partial(encode, self._encoder))

    async def encode_text(self, text: str) -> Prompt:
        """Return the prompt of a text, with the tokenizer's special tokens but no chat template.

        Raises:
            QueueFull, ShuttingDown, TooLong, PromptError: see ``encode``.
        """
        raw = RawPerfMetrics()
        return await self.encode(len(text), lambda encoder: encoder.text(text, False, raw))

    def request_ids(self) -> Mapping[int, str]:
        """Return the names of the requests that wait or run, by their numbers in the pipeline."""
        return dict(self._names)

    async def submit(
        self, prompt: str | list[int] | Prompt, config: GenerationConfig, request_id: str
    ) -> RunningRequest:
        """Add a request to the queue.

        Args:
            prompt: a text, as for ``encode_text``; ids; or a prompt.
            config: parameters.
            request_id: name of the request in logs and observations.

        Raises:
            QueueFull: too many requests wait.
            ShuttingDown: the server is shutting down.
            TooLong: the prompt or the requested answer is too long.
            BadRequest: a limit of the server is exceeded.
            ConfigError, PromptError: see ``ContinuousBatchingPipeline.add_request``.
        """
        arrived = time.monotonic()
        config = self._bounded(config)
        if isinstance(prompt, str):
            prompt = await self.encode_text(prompt)
        made = Prompt(prompt) if isinstance(prompt, list) else prompt
        number = next(self._numbers)
        with self._place_in_queue():
            # Fitted before: shorter chats are encoded for a client that stays, but any is added.
            fit = partial(fitted, made, self.pipeline.get_lengths())
            made = await self._workers.run(len(made.ids), fit)
            add = partial(self.pipeline.add_prompt, number, made, config)
            handle, count = await _added(self._workers.run(len(made.ids), add))
        times = RequestTimes(self._metrics, self.name, count, arrived)
        left = max(self._limits.timeout - (time.monotonic() - arrived), 0)
        return self._run(RunningRequest(handle, count, times), number, request_id, left)

    def _run(
        self, request: RunningRequest, number: int, request_id: str, timeout: float
    ) -> RunningRequest:
        """Run a request that the pipeline has, for so many seconds at most."""
        error = timed_out(self._limits.timeout)
        timer = asyncio.get_running_loop().call_later(timeout, request.fail, error)

        def ended() -> None:
            timer.cancel()
            self._activity.remove(request)
            self._names.pop(number, None)
            self._note_change()
            if request.completed:
                self._rate.note()
                self.last_metrics = request.handle.get_perf_metrics()

        request.on_end(ended)
        self._names[number] = request_id
        self._activity.add(request)
        self._stepper.follow(request)
        self._note_change()
        return request

    @contextmanager
    def _place_in_queue(self) -> Generator[None]:
        """Count a request, whose prompt is read, as one that waits.

        Raises:
            QueueFull, ShuttingDown: see ``submit``.
            TooLong: the prompt is too long.
        """
        self._activity.check()
        check_queue(self.name, self.queue, self.queue_limit, self._rate)
        self._adding += 1
        try:
            yield
        except PromptTooLong as error:
            raise TooLong(str(error)) from error
        finally:
            self._adding -= 1

    def _bounded(self, config: GenerationConfig) -> GenerationConfig:
        """Return the parameters with the server's limit of an answer, if they have none.

        Their grammar is lenient if the server is.

        Raises:
            BadRequest: a limit is exceeded.
        """
        most, places = self._limits.max_tokens, self.pipeline.get_max_sequences()
        if config.num_return_sequences > places or config.num_beams > places:
            count = max(config.num_return_sequences, config.num_beams)
            raise BadRequest(
                f"n = {count}: the server runs {places} sequences at a time; request fewer, or "
                "raise --slots",
                param="n",
            )
        if config.max_new_tokens != UNSET and config.max_new_tokens > most:
            raise BadRequest(
                f"max_tokens = {config.max_new_tokens}: the server's limit is {most}; request "
                "fewer, or raise --max-tokens",
                param="max_tokens",
            )
        structured = config.structured_output_config
        if structured is not None and self._limits.lenient:
            lenient = structured.model_copy(update={"lenient": True})
            config = config.updated({"structured_output_config": lenient})
        unset = config.max_new_tokens == UNSET and config.max_length == UNSET
        return config.updated({"max_new_tokens": most}) if unset else config

    def _note_change(self) -> None:
        self.changes += 1
