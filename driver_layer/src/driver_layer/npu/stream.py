"""Streams: work for the device in the order of submission, each stream on its own thread.

A command queue is a stream. The work of two streams may overlap: a copy runs during an inference.
The threads are daemons, so a stream that waits for a missing signal cannot keep the process alive;
a device joins the threads when the process ends (``npu.device``).

A signal handler may raise at any moment of a submission; earlier and later submissions still run.
Therefore ``threading.Thread`` is used only to start threads: its own state is wrong if the handler
raised while it was updated.
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
    """State that a stream and its thread share; the thread holds no reference to the stream."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[tuple[Job, Outcome] | None] = SimpleQueue()
        self.serving = threading.Lock()
        """Held by the thread while it serves."""
        self.thread = 0

    def serve(self) -> None:
        """Run jobs until the queue returns None, unless another thread already does."""
        if not self.serving.acquire(blocking=False):
            return
        self.thread = threading.get_ident()
        while (entry := self.jobs.get()) is not None:
            job, outcome = entry
            outcome.run(job)
            del entry, job, outcome  # else kept alive until the next job arrives
        self.serving.release()


class Stream:
    """A thread that runs jobs one after the other.

    Args:
        name: name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._begin()

    def _begin(self) -> None:
        self._submitting = threading.Lock()
        self._server = _Server()
        self._used = False
        """True if any job was submitted."""
        self._last: Outcome | None = None
        """Outcome of the latest job; None also if a signal interrupted its submission."""
        # The thread of a garbage-collected stream ends after the submitted jobs.
        weakref.finalize(self, self._server.jobs.put, None).atexit = False
        self._process = os.getpid()  # last: if interrupted earlier, the next call begins again

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
        """Wait for all submitted jobs, with a timeout; return whether they have ended."""
        self._look_where()
        return not self._used or self.latest().wait(seconds)

    def latest(self) -> Outcome:
        """Return the outcome of the latest job, or of a new empty one.

        An empty job is submitted if a signal interrupted the latest submission.
        """
        self._look_where()
        return self._last or self.submit(_nothing)

    def join(self) -> None:
        """End the thread after the submitted jobs, and wait for its end."""
        server = self._server
        elsewhere = self._process != os.getpid() or server.thread == threading.get_ident()
        if elsewhere or not server.serving.locked():
            return
        server.jobs.put(None)
        with server.serving:
            pass

    def _look_where(self) -> None:
        """Begin again in a forked process: it has no threads and may have inherited a held lock."""
        if self._process != os.getpid():
            self._begin()


def _nothing() -> None:
    """Do nothing; the job ends when all jobs before it have ended."""
