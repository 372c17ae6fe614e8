"""Choice of the requests that run: first come, first served; their numbers, and full caches.

A request runs when the places for its sequences are free; one that needs more than all places runs
alone. Any thread may add requests; one thread at a time runs steps.

Source: openvino_genai.PipelineMetrics, docs/reference/genai.md#continuous-batching. Ours: the cache
usage is that of the fullest request, because each has a cache of its own.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from genai_layer.batching.generation import Generation
from genai_layer.batching.places import Places
from genai_layer.batching.request import GenerationStatus, Request
from genai_layer.errors import ConfigError

_WINDOW = 1000
"""Steps of the running average."""


@dataclass(frozen=True, slots=True)
class PipelineMetrics:
    """Numbers of the last step, and of the steps before."""

    requests: int = 0
    """Requests that waited or ran."""
    scheduled_requests: int = 0
    """Requests that ran."""
    cache_usage: float = 0.0
    """Percentage of the fullest request's cache that was used; 100 for caches that grow."""
    max_cache_usage: float = 0.0
    """Largest cache_usage since the last call of ``generate``."""
    avg_cache_usage: float = 0.0
    """Mean of the last 1000 cache_usage since the last call of ``generate``."""
    cache_size_in_bytes: int = 0
    """Always 0: runtimes do not report it."""
    kv_cache_size_in_bytes: int = 0
    """Always 0: runtimes do not report it."""
    la_peak_pool_blocks: int = 0
    """Always 0: there are no blocks of linear attention."""


class Usage:
    """Metrics of the last step."""

    def __init__(self) -> None:
        self._usages = deque[float](maxlen=_WINDOW)
        self._highest = 0.0
        self.last = PipelineMetrics()

    def reset(self) -> None:
        """Forget the steps before."""
        self._usages.clear()
        self._highest = 0.0

    def note(self, requests: int, scheduled: int, usage: float) -> None:
        """Note a step.

        Args:
            requests: number of requests that wait or run.
            scheduled: number of requests that run.
            usage: percentage of the fullest cache that is used.
        """
        self._usages.append(usage)
        self._highest = max(self._highest, usage)
        average = sum(self._usages) / len(self._usages)
        self.last = PipelineMetrics(requests, scheduled, usage, self._highest, average)


class Scheduler:
    """Requests that wait or run.

    Args:
        places: runtime requests for the running ones.
        decode: returns the text of ids, without special tokens.
    """

    def __init__(self, places: Places, decode: Callable[[list[int]], str]) -> None:
        self._places = places
        self._decode = decode
        self._lock = threading.Lock()
        """Lock of the waiting and running requests."""
        self._waiting = deque[Request]()
        self._running: list[Generation] = []
        self._usage = Usage()

    @property
    def busy(self) -> bool:
        """True if a request waits or runs."""
        with self._lock:
            return bool(self._waiting or self._running)

    @property
    def metrics(self) -> PipelineMetrics:
        """Metrics of the last step."""
        return self._usage.last

    def conversations(self) -> Mapping[int, int]:
        """Return the numbers of the running requests, by the ``id`` of their conversations."""
        with self._lock:
            found = [(one.conversations, one.request.number) for one in self._running]
        return {id(one): number for every, number in found if number is not None for one in every}

    def add(self, request: Request) -> None:
        """Add a request.

        Raises:
            ConfigError: a request of the same number waits or runs.
        """
        with self._lock:
            known = {one.number for one in self._waiting}
            known |= {one.request.number for one in self._running}
            if request.number is not None and request.number in known:
                raise ConfigError(
                    f"request_id = {request.number}: a request of this number has not ended; "
                    "pass another number"
                )
            self._waiting.append(request)

    def step(self) -> None:
        """Compute a token of each running request; for a long prompt, read a part of it.

        Raises:
            RuntimeFailure: the runtime's batching failed.
        """
        self.remove_dropped()
        with self._lock:
            self._admit()
            running, waiting = list(self._running), len(self._waiting)
        for one in running:
            one.submit()
        usage = max((one.cache_usage for one in running), default=0.0)
        self._usage.note(len(running) + waiting, len(running), usage)
        self._places.step()
        for one in running:
            one.proceed()
        with self._lock:
            self._running = [one for one in self._running if not one.ended]

    def complete(self, requests: Sequence[Request]) -> None:
        """Run steps until requests have ended; if one fails, the others are cancelled.

        Raises:
            GenAIError: the error of a request.
        """
        streams = [one.stream for one in requests]
        self._usage.reset()
        try:
            for request in requests:
                self.add(request)
            while any(one.status is GenerationStatus.RUNNING for one in streams):
                self.step()
                for failed in (one.error for one in streams if one.error is not None):
                    raise failed
        finally:
            for one in streams:
                if one.status is GenerationStatus.RUNNING:
                    one.drop(GenerationStatus.CANCEL)
            self.remove_dropped()

    def remove_dropped(self) -> None:
        """Remove the requests that were stopped or cancelled, which frees their places."""
        with self._lock:
            for one in [one for one in self._waiting if one.stream.dropped]:
                self._waiting.remove(one)
                one.stream.end(one.stream.status, one.metrics)
            for one in self._running:
                if one.request.stream.dropped and not one.ended:
                    one.drop()
            self._running = [one for one in self._running if not one.ended]

    def _admit(self) -> None:
        while self._waiting and self._fits(self._waiting[0]):
            request = self._waiting[0]
            if not self._has_begun(request):
                try:
                    self._running.append(self._begun(request))
                except Exception as error:  # whatever it is, its reader has to learn of it
                    request.stream.end(GenerationStatus.IGNORED, request.metrics, error)
            self._waiting.popleft()  # not before: an interrupt leaves the request waiting

    def _begun(self, request: Request) -> Generation:
        places, used = self._places, [one.stored for one in self._running if not one.ended]
        resting = places.count - self._taken() - request.sequences
        return Generation(request, places.requests, used, max(resting, 0), self._decode)

    def _has_begun(self, request: Request) -> bool:
        """Return whether an interrupted admission has come to begin a request, or to end it."""
        failed = request.stream.status is GenerationStatus.IGNORED
        return failed or any(one.request is request for one in self._running)

    def _fits(self, request: Request) -> bool:
        return not self._running or self._taken() + request.sequences <= self._places.count

    def _taken(self) -> int:
        return sum(one.request.sequences for one in self._running)
