"""Times of a request, noted in the metrics as they become known; the rate of completed requests.

Retry-After follows from the rate, when a model's queue is full.
"""

from __future__ import annotations

import math
import time
from collections import deque

from genai_layer.serve.errors import QueueFull
from genai_layer.serve.metrics import Metrics


class RequestTimes:
    """Times and tokens of one request; used by one thread at a time.

    Args:
        metrics: the server's.
        model: name of the model.
        prompt_tokens: tokens of the prompt.
        arrived: time of the request's arrival, of ``time.monotonic``.
    """

    def __init__(self, metrics: Metrics, model: str, prompt_tokens: int, arrived: float) -> None:
        self._metrics, self._model = metrics, model
        self._prompt_tokens, self._arrived = prompt_tokens, arrived
        self._begun = self._first = self._last = 0.0
        self._generated = 0

    def note_begin(self, begun: float) -> None:
        """Note when the request got a place; further calls have no effect."""
        if not self._begun:
            self._begun = begun
            self._metrics.queue_time.labels(self._model).observe(self._begun - self._arrived)

    def note_tokens(self, count: int) -> None:
        """Note the tokens of a step."""
        if not count:
            return
        metrics, model, now = self._metrics, self._model, time.monotonic()
        if self._first:
            metrics.between_tokens.labels(model).observe((now - self._last) / count)
        else:
            self._first = now
            metrics.first_token.labels(model).observe(now - self._arrived)
            metrics.prefill_time.labels(model).observe(now - self._begun)
            metrics.prompt_tokens.labels(model).inc(self._prompt_tokens)
        self._last = now
        self._generated += count
        metrics.generation_tokens.labels(model).inc(count)

    def note_end(self, reason: str, cached_tokens: int) -> None:
        """Note the end of the request.

        Args:
            reason: stop, length, abort or error.
            cached_tokens: tokens of the prompt that were stored.
        """
        metrics, model = self._metrics, self._model
        metrics.success.labels(model, reason).inc()
        metrics.request_prompt_tokens.labels(model).observe(self._prompt_tokens)
        metrics.request_generation_tokens.labels(model).observe(self._generated)
        metrics.whole.labels(model).observe(time.monotonic() - self._arrived)
        if self._first:
            metrics.decode_time.labels(model).observe(self._last - self._first)
            metrics.prefix_queries.labels(model).inc(self._prompt_tokens)
            metrics.prefix_hits.labels(model).inc(cached_tokens)


_WINDOW = 32
"""Completed requests of which the rate is the mean."""
_RECENT = 60.0
"""Seconds after which a completed request no longer counts."""
_UNKNOWN = 5
"""Seconds to wait as long as there is no rate."""
_LONGEST = 600


class CompletionRate:
    """Times of the last completed requests."""

    def __init__(self) -> None:
        self._times = deque[float](maxlen=_WINDOW)

    def note(self) -> None:
        """Note that a request was completed."""
        self._times.append(time.monotonic())

    def seconds_for(self, requests: int) -> int:
        """Return the seconds in which so many requests will be completed, from 1 to 600."""
        now = time.monotonic()
        recent = [one for one in self._times if now - one < _RECENT]
        if not recent:
            return _UNKNOWN
        seconds = requests * (now - recent[0]) / len(recent)
        return min(max(math.ceil(seconds), 1), _LONGEST)


def check_queue(name: str, waiting: int, limit: int, rate: CompletionRate) -> None:
    """Reject a request if the queue is full.

    Args:
        name: name of the model.
        waiting: requests that wait.
        limit: maximum number of these.
        rate: the model's, from which the time to wait follows.

    Raises:
        QueueFull: the queue is full; its header Retry-After has the seconds to wait.
    """
    if waiting < limit:
        return
    seconds = str(rate.seconds_for(waiting))
    raise QueueFull(
        f"{name}: {waiting} requests wait, as many as the queue holds; try again in {seconds} s",
        headers={"Retry-After": seconds},
    )
