"""Steps of a pipeline, in a thread that exists while requests are pending."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Sequence

from genai_layer.batching.pipeline import ContinuousBatchingPipeline
from genai_layer.serve.engine.running import RunningRequest

_log = logging.getLogger(__name__)


class Stepper:
    """Steps of a pipeline; a thread exists only while requests are pending.

    Args:
        pipeline: the pipeline, whose steps no other thread runs.
        stepped: called in that thread after each step.
    """

    def __init__(self, pipeline: ContinuousBatchingPipeline, stepped: Callable[[], None]) -> None:
        self._pipeline = pipeline
        self._stepped = stepped
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        """Lock of the two fields below."""
        self._followed: list[RunningRequest] = []
        self._works = False

    @property
    def followed(self) -> Sequence[RunningRequest]:
        """Requests that have not ended."""
        with self._lock:
            return tuple(self._followed)

    def follow(self, request: RunningRequest) -> None:
        """Run steps until a request, which the pipeline has, ends."""
        with self._lock:
            self._followed.append(request)
            if self._works:
                return
            self._works = True
        threading.Thread(target=self._work, name="npu-serve steps", daemon=True).start()

    def _work(self) -> None:
        failed = False
        while self._has_work(failed):
            failed = False
            try:
                self._pipeline.step()
            except Exception as error:  # the thread must live on, and readers learn of it
                failed = True
                _log.exception("a step failed")
                for request in self.followed:
                    request.break_off(error)
            self._collect()

    def _has_work(self, failed: bool) -> bool:
        """Return whether requests are pending; if not, the thread ends.

        A cancelled request is followed no more, and leaves its place in the next step, unless steps
        fail.
        """
        with self._lock:
            leaving = not failed and self._pipeline.has_non_finished_requests()
            self._works = bool(self._followed) or leaving
            return self._works

    def _collect(self) -> None:
        followed = self.followed
        ended = {request for request in followed if not request.collect()}
        with self._lock:
            self._followed = [one for one in self._followed if one not in ended]
        self._stepped()
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server has ended
            self._loop.call_soon_threadsafe(_wake, followed)


def _wake(requests: Sequence[RunningRequest]) -> None:
    for request in requests:
        request.wake()
