"""Lets requests of one model run in the order in which they are started, each after the one before.

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
    """What requests of one model know of one another."""

    def __init__(self) -> None:
        self._places = 0
        """How many have theirs: those that were started once."""
        self._last: int = -1
        """Whose inference was started last."""
        self._gone: set[int] = set()
        """Places of requests that there are no more."""
        self._begin()

    def place(self) -> Place:
        """Give a request a place, which it takes when it is first started."""
        return _Placed(self)

    @contextmanager
    def started(self, number: int | None) -> Generator[_Turn]:
        """As ``Place.started``, of a request with a number or, the first time, without one."""
        if self._process != os.getpid():
            self._begin()
        with self._lock:
            turn = _Turn(self._places if number is None else number, self._ended)
            # As in the original, a round may end early: the first begins another at any time.
            if turn.number and turn.number != self._next():
                raise NpuwUsageError(
                    f"{NAME} = YES: requests are started in the order of their first inferences; "
                    f"this is request {turn.number + 1}, and the last was {self._last + 1}"
                )
            yield turn
            self._places = max(self._places, turn.number + 1)
            self._last, self._ended = turn.number, turn.ended

    def leave(self, number: int) -> None:
        """A request is gone: nobody waits for it. Called whenever, in any thread."""
        self._gone.add(number)

    def _next(self) -> int:
        """Whose turn is next."""
        number = self._last + 1
        while number in self._gone:
            number += 1
        return number

    def _begin(self) -> None:
        """Wait for nothing, also in a forked process: nothing of its parent ends there."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        """Whether what was started last has ended."""
        self._ended.set()


class _Placed:
    """A request's place among others."""

    def __init__(self, order: InOrder) -> None:
        self._order = order
        self._number: int | None = None

    def check_at_once(self) -> None:
        raise NpuwUsageError(f"{NAME} = YES: inferences are started; use start_async and wait")

    @contextmanager
    def started(self) -> Generator[Take]:
        with self._order.started(self._number) as turn:
            yield turn.take
        if self._number is None:
            self._number = turn.number
            weakref.finalize(self, self._order.leave, turn.number).atexit = False


class _Turn:
    """One inference among others.

    Args:
        number: of its request.
        before: set when the one before has ended.
    """

    def __init__(self, number: int, before: threading.Event) -> None:
        self.number = number
        self.ended = threading.Event()
        self._before = before

    def take(self, work: Work) -> None:
        """Do it when the one before has ended, however that did."""
        self._before.wait()
        try:
            work()
        finally:
            self.ended.set()


def order_of(options: Options) -> Callable[[], Place]:
    """Give what gives each request of a model its place."""
    return InOrder().place if options.run_inferences_sequentially else AtAnyTime
