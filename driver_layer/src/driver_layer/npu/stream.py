"""Streams: work for the device in the order of submission, each stream on a thread of its own.

A command queue is a stream. What two streams do may overlap: a copy runs beside an inference. The
threads are daemons, so that a stream that waits for what never comes cannot keep the process; a
device ends them in good order when the process does (``npu.device``).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue

Job = Callable[[], object]
_Jobs = SimpleQueue[tuple[Job, Future[object]] | None]


class Stream:
    """Runs jobs one after the other.

    Args:
        name: of its thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._starting = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._jobs: _Jobs = SimpleQueue()
        self._thread: threading.Thread | None = None
        # Who drops a stream lets its thread end, after what was submitted.
        weakref.finalize(self, self._jobs.put, None).atexit = False

    def submit(self, job: Job) -> Future[object]:
        """Queue a job; the first one starts the thread."""
        if self._process != os.getpid():
            # A forked process has none of its parent's threads, and maybe a lock that one held.
            self._starting = threading.Lock()
            self._begin()
        done = Future[object]()
        with self._starting:  # one thread, whoever submits first
            if self._thread is None:
                serve = threading.Thread(
                    target=_serve, args=(self._jobs,), name=self._name, daemon=True
                )
                serve.start()
                self._thread = serve
        self._jobs.put((job, done))
        return done

    def join(self) -> None:
        """Let the thread end, after what was submitted, and wait for that."""
        thread = self._thread
        if self._process != os.getpid() or thread is None or thread is threading.current_thread():
            return
        self._jobs.put(None)
        thread.join()


def _serve(jobs: _Jobs) -> None:
    while (entry := jobs.get()) is not None:
        _run(*entry)
        del entry  # not kept alive until the next job comes


def _run(job: Job, done: Future[object]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        result = job()
    except BaseException as error:  # whoever waits for it is told
        done.set_exception(error)
    else:
        done.set_result(result)
