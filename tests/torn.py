"""Calls that a signal's handler ends, at any moment."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Alarm:
    """Raises something, so many seconds after a call has begun."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error
        self._armed = False

    def ends(self, call: Callable[[], object], seconds: float) -> bool:
        """Make a call; tell whether it was ended."""
        try:
            try:
                self._armed = True
                signal.setitimer(signal.ITIMER_REAL, seconds)
                call()
            finally:
                self._armed = False
        except self._error as error:
            assert error.args == ("mine",)  # noqa: PT017  # what else it may raise is of the same type
            return True
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return False

    def ring(self, *_: object) -> None:
        """Handle the signal; one that comes late ends nothing."""
        if self._armed:
            self._armed = False
            raise self._error("mine")


@contextmanager
def alarm(error: type[BaseException]) -> Iterator[Alarm]:
    """Give an alarm, and take it away again."""
    made = Alarm(error)
    before = signal.signal(signal.SIGALRM, made.ring)
    try:
        yield made
    finally:
        signal.signal(signal.SIGALRM, before)
