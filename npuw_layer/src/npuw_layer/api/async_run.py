"""Runs a request's inferences, one at a time, on the caller's thread or on one of its own."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from numbers import Real
from typing import Any, TypeVar

from driver_layer.npu.stream import Stream
from driver_layer.support.outcome import Outcome
from npuw_layer.api.in_order import AtAnyTime, Place
from npuw_layer.errors import InferenceCancelled, NpuwFault, NpuwUsageError, RequestBusy
from npuw_layer.execution.profiling.info import ProfilingInfo
from npuw_layer.execution.profiling.profile import make_profile
from npuw_layer.options import Options

R = TypeVar("R")
Work = Callable[[], None]
Callback = Callable[[], None]


class AsyncRun:
    """The running inference of a request, and a request to stop it.

    Args:
        around: gives what stands around each inference, on the thread that it runs on.
        place: says when it may run; at any time, if not given.
    """

    def __init__(
        self,
        around: Callable[[], AbstractContextManager[None]] = nullcontext,
        place: Place | None = None,
    ) -> None:
        self._around = around
        self._place = place or AtAnyTime()
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
        """That runs an inference or its callback, if one does."""
        self._started: Outcome | None = None
        self._process = os.getpid()  # last: what is interrupted before begins anew

    def check_idle(self) -> None:
        """See that nothing is running.

        Raises:
            RequestBusy: something is.
        """
        self._look_where()
        if self._holder is not None:
            raise RequestBusy("the request is running; wait() for it, or use another request")

    def check_wanted(self) -> None:
        """See that the inference is still wanted; called where it can end.

        Raises:
            InferenceCancelled: it is not.
        """
        if self._cancelled:
            raise InferenceCancelled("the inference was cancelled")

    def run(self, work: Callable[[], R]) -> R:
        """Do it now, and give what it gives.

        Raises:
            RequestBusy: the request is running.
            NpuwUsageError: it may only be started.
        """
        self._place.check_at_once()
        mine = object()
        try:
            self._claim(mine)
            self._started = None
            with self._around():
                return work()
        finally:
            if self._holder is mine:  # no call: in one a signal could keep this from happening
                self._holder = None

    def start(self, work: Work, callback: Callback | None, prepare: Work) -> None:
        """Begin on the request's own thread.

        Args:
            work: what to do.
            callback: called when it has ended, however; the request is idle then, and may be
                started again. What it raises, ``wait`` raises.
            prepare: what is done first, on the caller's thread; what it raises is raised here.

        Raises:
            RequestBusy: the request is running.
            NpuwUsageError: it is the turn of another request.
            NpuwFault: there is no thread to be had: there are too many, or the process ends.
        """
        outcome, before = Outcome(), self._started
        submitted = False
        try:
            self._claim(outcome)
            with self._place.started() as take:
                prepare()
                self._started = outcome  # whoever runs it may begin the next one before it returns
                self._submit(outcome, partial(self._work, partial(take, work), callback, outcome))
                submitted = True
        except BaseException:
            with self._lock:
                # A signal may come when it runs already, or others wait for its turn to end: then
                # it has begun after all.
                given_up = not submitted and self._running is not outcome
                if given_up and self._holder is outcome:
                    self._started, self._holder = before, None
            raise

    def _submit(self, outcome: Outcome, work: Work) -> None:
        try:
            _finish_at_exit()
            self._stream.submit(partial(outcome.run, work))
        except RuntimeError as error:
            raise NpuwFault(
                f"no thread for a request that runs beside its caller: {error}"
            ) from None

    def wait(self, milliseconds: float | None = None) -> bool:
        """Wait for what was started; raise what it raised, each time until the next inference.

        Args:
            milliseconds: how long at most; None: for ever.

        Returns:
            Whether it has ended; also if nothing was started.

        Raises:
            RequestBusy: a callback waits for its own thread.
        """
        self._look_where()
        # Asked first: it would wait for itself.
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
        """Ask what is running to end; nothing happens if nothing is."""
        self._look_where()
        with self._lock:
            if self._holder is not None:
                self._cancelled = True

    def _look_where(self) -> None:
        """Begin anew in a forked process: it has no thread that would ever end what runs."""
        if self._process != os.getpid():
            self._begin()

    def _claim(self, holder: object) -> None:
        """Begin; who claims gives it back however that ends, even if it was interrupted."""
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
    """See that what was started ends before the process does, and before its devices shut down."""

    def finish() -> None:
        for stream in tuple(_streams):
            stream.wait()
            stream.join()

    atexit.register(finish)


class AsyncRequest:
    """Asynchronous inferences of a request: start, callback, wait and cancel.

    Args:
        options: PERF_COUNT and NPU_PROFILING_TYPE, which say what they tell of their times.
        place: says when they may run; at any time, if not given.
    """

    def __init__(self, options: Options, place: Place | None = None) -> None:
        self._profile = make_profile(options)
        self._run = AsyncRun(self._profile.inference, place)
        self._callback: Callable[[Any], object] | None = None
        self._userdata: Any = None

    def wait(self) -> None:
        """Wait for the inference begun by ``start_async``; raise what it raised."""
        self._run.wait()

    def wait_for(self, timeout: float, /) -> bool:
        """Wait at most ``timeout`` milliseconds; tell whether the inference has ended.

        Raises:
            NpuwUsageError: that is no time, or a negative one.
        """
        if not isinstance(timeout, Real) or not timeout >= 0:  # NaN is not, either
            raise NpuwUsageError(f"wait_for takes milliseconds, 0 or more, not {timeout!r}")
        # Longer than threads can wait is as good as for ever.
        longest = threading.TIMEOUT_MAX * 1000
        return self._run.wait(None if timeout > longest else timeout)

    def set_callback(
        self, callback: Callable[[Any], object] | None, userdata: Any = None, /
    ) -> None:
        """Have ``callback(userdata)`` called whenever an inference of ``start_async`` has ended.

        None calls nobody.
        It is called on the request's thread, also after a failure, when the request is idle: it may
        start the next inference. ``wait`` returns after it, and raises what it raises.

        Raises:
            NpuwUsageError: it cannot be called.
            RequestBusy: the request is running.
        """
        if callback is not None and not callable(callback):
            raise NpuwUsageError(f"a callback is what can be called, not {callback!r}")
        self._run.check_idle()
        self._callback, self._userdata = callback, userdata

    @property
    def profiling_info(self) -> list[ProfilingInfo]:
        """Times of inferences on the simulated device; as ``get_profiling_info``."""
        return self.get_profiling_info()

    def get_profiling_info(self) -> list[ProfilingInfo]:
        """Tell what inferences took on the simulated device.

        Returns:
            With NPU_PROFILING_TYPE = MODEL the layers of the last inference: program by program in
            the order in which these ran, layers in the order in which they began. With INFER
            average, minimum and maximum (AVG, MIN, MAX) over all inferences. Nothing without
            PERF_COUNT = YES, and of devices that do not tell.

        Raises:
            NpuwUsageError: there was no inference yet.
            RequestBusy: the request is running.
        """
        self._run.check_idle()
        return self._profile.info()

    def _start(self, work: Work, userdata: Any, prepare: Work = lambda: None) -> None:
        """Begin on the request's own thread, with ``userdata`` in place of the callback's own."""
        callback, given = self._callback, self._userdata if userdata is None else userdata

        def call() -> None:
            if callback is not None:
                callback(given)

        self._run.start(work, call, prepare)
