"""Runs of a request's inferences, one at a time, on the caller's thread or the request's own."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from typing import TypeVar

from driver_layer.npu.stream import Stream
from driver_layer.support.outcome import Outcome
from npuw_layer.api.in_order import Turn
from npuw_layer.errors import InferenceCancelled, NpuwFault, RequestBusy

R = TypeVar("R")
Work = Callable[[], None]
Callback = Callable[[], object]


class AsyncRun:
    """The running inference of a request, and its cancellation.

    Args:
        around: returns a context manager around each inference, on the inference's thread.
        place: position among ordered requests; by default, inferences run at any time.
    """

    def __init__(
        self,
        around: Callable[[], AbstractContextManager[None]] = nullcontext,
        place: Turn | None = None,
    ) -> None:
        self._around = around
        self._place = place or Turn()
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._holder: object | None = None
        """The inference that is running, or about to."""
        self._running: object | None = None
        """The inference that the request's own thread runs."""
        self._cancelled = False
        self._stream = Stream("npuw-request")
        _streams.add(self._stream)
        self._thread = 0
        """Id of the thread that runs an inference or its callback; 0 without one."""
        self._started: Outcome | None = None
        self._process = os.getpid()  # last: an interrupted _begin is repeated

    def check_idle(self) -> None:
        """Check that nothing is running.

        Raises:
            RequestBusy: an inference is running.
        """
        self._look_where()
        if self._holder is not None:
            raise RequestBusy("the request is running; wait() for it, or use another request")

    def check_wanted(self) -> None:
        """Check that the inference is not cancelled; called at points where it can end.

        Raises:
            InferenceCancelled: the inference was cancelled.
        """
        if self._cancelled:
            raise InferenceCancelled("the inference was cancelled")

    def run(self, work: Callable[[], R]) -> R:
        """Do the work now, and return its result.

        Raises:
            RequestBusy: the request is running.
            NpuwUsageError: inferences of this request may only be started.
        """
        self._place.check_at_once()
        mine = object()
        try:
            self._claim(mine)
            self._started = None
            with self._around():
                return work()
        finally:
            if self._holder is mine:  # no call: a signal during a call could skip the reset
                self._holder = None

    def start(self, work: Work, callback: Callback | None, prepare: Work) -> None:
        """Start work on the request's own thread.

        Args:
            work: the work to do.
            callback: called when the work has ended, also by an error; the request is idle then,
                and may be started again. ``wait`` raises errors of the callback.
            prepare: called first, on the caller's thread; its errors are raised here.

        Raises:
            RequestBusy: the request is running.
            NpuwUsageError: another request must start first.
            NpuwFault: no thread can be started: too many exist, or the process is ending.
        """
        outcome, before = Outcome(), self._started
        submitted = False
        try:
            self._claim(outcome)
            with self._place.started() as take:
                prepare()
                self._started = outcome  # first: the thread may start the next before _submit ends
                self._submit(outcome, partial(self._work, partial(take, work), callback, outcome))
                submitted = True
        except BaseException:
            with self._lock:
                # A signal may arrive when the work already runs, or when another request waits for
                # the end of this turn: in both cases the inference has begun.
                given_up = not submitted and self._running is not outcome
                if given_up and self._holder is outcome:
                    self._started, self._holder = before, None
            raise

    def _submit(self, outcome: Outcome, work: Work) -> None:
        try:
            _finish_at_exit()
            self._stream.submit(partial(outcome.run, work))
        except RuntimeError as error:
            raise NpuwFault(f"no thread for the inference can be started: {error}") from None

    def wait(self, milliseconds: float | None = None) -> bool:
        """Wait for the started inference; raise its error, at each call until the next inference.

        Args:
            milliseconds: longest time to wait; None waits without limit.

        Returns:
            Whether the inference has ended; True if none was started.

        Raises:
            RequestBusy: a callback waits for its own thread.
        """
        self._look_where()
        # Check first: a callback would wait for itself.
        if self._thread == threading.get_ident():
            raise RequestBusy("a callback cannot wait for an inference of its own request")
        started = self._started
        if started is None:
            return True
        if not started.wait(None if milliseconds is None else milliseconds / 1000):
            return False
        if started.error is not None:
            raise started.error
        return True

    def cancel(self) -> None:
        """Request cancellation of the running inference; without one, do nothing."""
        self._look_where()
        with self._lock:
            if self._holder is not None:
                self._cancelled = True

    def _look_where(self) -> None:
        """Reset in a forked process, which has no thread that would end the running inference."""
        if self._process != os.getpid():
            self._begin()

    def _claim(self, holder: object) -> None:
        """Claim the request; the claimer always releases it, even if interrupted."""
        self._look_where()
        with self._lock:
            self.check_idle()
            self._holder = holder
            self._cancelled = False

    def _work(self, work: Work, callback: Callback | None, holder: object) -> None:
        with self._lock:
            if self._holder is not holder:
                return  # given up before its turn
            self._running = holder
        self._thread = threading.get_ident()
        try:
            with self._around():
                work()
        finally:
            self._running = self._holder = None
            try:
                if callback is not None:
                    callback()
            finally:
                self._thread = 0


_streams: weakref.WeakSet[Stream] = weakref.WeakSet()


@cache
def _finish_at_exit() -> None:
    """Register an exit handler that waits for started inferences before devices shut down."""

    def finish() -> None:
        for stream in tuple(_streams):
            stream.wait()
            stream.join()

    atexit.register(finish)
