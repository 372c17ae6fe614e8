"""Calls that a signal handler interrupts at an arbitrary moment."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Alarm:
    """Timer whose signal handler raises an error during a call."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error
        self._armed = False

    def ends(self, call: Callable[[], object], seconds: float) -> bool:
        """Make a call and interrupt it after ``seconds``; return whether it was interrupted.

        CPython drops an exception that is raised in a callback of the collector, so none runs.
        """
        gc.disable()
        try:
            try:
                self._armed = True
                signal.setitimer(signal.ITIMER_REAL, seconds)
                call()
            finally:
                self._armed = False
        except self._error as error:
            assert error.args == ("mine",)  # noqa: PT017  # other errors of this type must not count
            return True
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            gc.enable()
        return False

    def ring(self, *_: object) -> None:
        """Handle the signal; raise only while a call runs."""
        if self._armed:
            self._armed = False
            raise self._error("mine")


@contextmanager
def alarm(error: type[BaseException]) -> Iterator[Alarm]:
    """Install an Alarm as the handler of SIGALRM; restore the previous handler at the end."""
    made = Alarm(error)
    before = signal.signal(signal.SIGALRM, made.ring)
    try:
        yield made
    finally:
        signal.signal(signal.SIGALRM, before)
