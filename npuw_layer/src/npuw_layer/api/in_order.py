"""Order among the requests of one model: each runs after the request started before it.

Source: fact sheet npuw §e.5 (NPU_RUN_INFERENCES_SEQUENTIALLY): inferences are started and not run
at once, and in each round in the order of the first.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from npuw_layer.errors import NpuwUsageError
from npuw_layer.options import Options

NAME = "NPU_RUN_INFERENCES_SEQUENTIALLY"

Work = Callable[[], None]
Take = Callable[[Work], None]
"""Does work when it is time for it."""


class Place(Protocol):
    """When a request may run."""

    def check_at_once(self) -> None:
        """See that it may run on its caller's thread.

        Raises:
            NpuwUsageError: it may not.
        """
        ...

    def started(self) -> AbstractContextManager[Take]:
        """Start an inference within this; unless that fails it has its turn.

        Raises:
            NpuwUsageError: it is the turn of another request.
        """
        ...


class AtAnyTime:
    """Of a request that has nothing to do with others."""

    def check_at_once(self) -> None:
        """It may."""

    def started(self) -> AbstractContextManager[Take]:
        """It is time at once."""
        return nullcontext(lambda work: work())


class InOrder:
    """Places and turns of the requests of one model."""

    def __init__(self) -> None:
        self._placed: list[weakref.ref[_Placed]] = []
        """Requests by the order of their first start; some no longer exist."""
        self._begin(-1)

    def place(self) -> Place:
        """Give a request a place, which it takes when it is first started."""
        return _Placed(self)

    @contextmanager
    def started(self, placed: _Placed) -> Generator[_Turn]:
        """As ``Place.started``, of a request with a place or, the first time, without one."""
        if self._process != os.getpid():
            self._begin(self._last[0])
        with self._lock:
            numbers = (n for n, one in enumerate(self._placed) if one() is placed)
            number = next(numbers, len(self._placed))
            last, ended = self._last
            turn = _Turn(ended)
            # As in the original, a round may end early: the first begins another at any time.
            if number and number != self._next():
                raise NpuwUsageError(
                    f"{NAME} = YES: requests are started in the order of their first inferences; "
                    f"this is request {number + 1}, and the last was {last + 1}"
                )
            try:
                yield turn
                turn.has_begun = True
            finally:  # whoever is interrupted may have begun it all the same
                if turn.has_begun:
                    if number == len(self._placed):
                        self._placed.append(weakref.ref(placed))
                    self._last = number, turn.ended

    def _next(self) -> int:
        """Return the number of the next request, skipping requests that no longer exist."""
        number = self._last[0] + 1
        while number < len(self._placed) and self._placed[number]() is None:
            number += 1
        return number

    def _begin(self, last: int) -> None:
        """Wait for nothing, also in a forked process: nothing of its parent ends there."""
        ended = threading.Event()
        ended.set()
        self._last: tuple[int, threading.Event] = last, ended
        """Number of the request started last, and an event set when its inference ended."""
        self._lock = threading.Lock()
        self._process = os.getpid()  # last: what is interrupted before begins anew


class _Placed:
    """A request's place among others."""

    def __init__(self, order: InOrder) -> None:
        self._order = order

    def check_at_once(self) -> None:
        raise NpuwUsageError(f"{NAME} = YES: inferences are started; use start_async and wait")

    @contextmanager
    def started(self) -> Generator[Take]:
        with self._order.started(self) as turn:
            yield turn.take


class _Turn:
    """One inference among others.

    Args:
        before: set when the one before has ended.
    """

    def __init__(self, before: threading.Event) -> None:
        self.ended = threading.Event()
        self.has_begun = False
        self._before = before

    def take(self, work: Work) -> None:
        """Do it when the one before has ended, however that did."""
        self.has_begun = True
        self._before.wait()
        try:
            work()
        finally:
            self.ended.set()


def order_of(options: Options) -> Callable[[], Place]:
    """Give what gives each request of a model its place."""
    return InOrder().place if options.run_inferences_sequentially else AtAnyTime
