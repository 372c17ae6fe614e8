"""Streams: work for the device in the order of submission, each stream on a thread of its own.

A command queue is a stream. What two streams do may overlap: a copy runs beside an inference. The
threads are daemons, so that a stream that waits for what never comes cannot keep the process; a
device ends them in good order when the process does (``npu.device``).

A signal's handler may raise at any moment of a submission; whatever was submitted before and comes
later runs all the same. Therefore nothing here is asked of ``threading.Thread`` but to begin: what
it knows of itself is wrong when such a moment was one of its own.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

from driver_layer.support.outcome import Outcome

Job = Callable[[], object]


class _Server:
    """What a stream and its thread share; the thread does not keep the stream."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[tuple[Job, Outcome] | None] = SimpleQueue()
        self.serving = threading.Lock()
        """Held by the thread while it is there."""
        self.thread = 0

    def serve(self) -> None:
        """Do jobs until there is None, unless another thread does already."""
        if not self.serving.acquire(blocking=False):
            return
        self.thread = threading.get_ident()
        while (entry := self.jobs.get()) is not None:
            job, outcome = entry
            outcome.run(job)
            del entry, job, outcome  # not kept alive until the next job comes
        self.serving.release()


class Stream:
    """Runs jobs one after the other.

    Args:
        name: of its thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._begin()

    def _begin(self) -> None:
        self._submitting = threading.Lock()
        self._server = _Server()
        self._used = False
        """Whether anything was submitted."""
        self._last: Outcome | None = None
        """Of what was submitted last; None also if a signal came just then."""
        # Who drops a stream lets its thread end, after what was submitted.
        weakref.finalize(self, self._server.jobs.put, None).atexit = False
        self._process = os.getpid()  # last: what is interrupted before begins anew

    def submit(self, job: Job) -> Outcome:
        """Queue a job; the first one starts the thread."""
        self._look_where()
        outcome, server = Outcome(), self._server
        with self._submitting:
            self._used = True
            if not server.serving.locked():
                threading.Thread(target=server.serve, name=self._name, daemon=True).start()
            self._last = None
            server.jobs.put((job, outcome))
            self._last = outcome
        return outcome

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for all that was submitted, at most so long; tell whether it has ended."""
        self._look_where()
        return not self._used or self.latest().wait(seconds)

    def latest(self) -> Outcome:
        """Give the outcome of what was submitted last.

        If a signal came just then, nobody knows it: then that of nothing, which is submitted now.
        """
        self._look_where()
        return self._last or self.submit(_nothing)

    def join(self) -> None:
        """Let the thread end, after what was submitted, and wait for that."""
        server = self._server
        elsewhere = self._process != os.getpid() or server.thread == threading.get_ident()
        if elsewhere or not server.serving.locked():
            return
        server.jobs.put(None)
        with server.serving:
            pass

    def _look_where(self) -> None:
        """Begin anew in a forked process.

        It has none of its parent's threads, and maybe a lock that one of them held.
        """
        if self._process != os.getpid():
            self._begin()


def _nothing() -> None:
    """Ends when all before it has ended."""
