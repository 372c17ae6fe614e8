"""Order among the requests of one model: each runs after the request started before it.

Source: docs/reference/npuw.md#execution (NPU_RUN_INFERENCES_SEQUENTIALLY): inferences must be
started with ``start_async``, and each round follows the order of the first round.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from npuw_layer.errors import NpuwUsageError
from npuw_layer.options import Options

NAME = "NPU_RUN_INFERENCES_SEQUENTIALLY"

Work = Callable[[], None]
Take = Callable[[Work], None]
"""Function that does work when its turn comes."""


class Turn:
    """Place of a request: decides when it may run; here at any time, independent of others."""

    def check_at_once(self) -> None:
        """Check that the request may run on its caller's thread.

        Raises:
            NpuwUsageError: inferences may only be started.
        """

    def started(self) -> AbstractContextManager[Take]:
        """Return a context in which to start an inference; it takes its turn unless that fails.

        Raises:
            NpuwUsageError: another request must start first.
        """
        return nullcontext(lambda work: work())


class InOrder:
    """Places and turns of the requests of one model."""

    def __init__(self) -> None:
        self._placed: list[weakref.ref[_Placed]] = []
        """Requests in the order of their first start; some no longer exist."""
        self._begin(-1)

    def place(self) -> Turn:
        """Return a place for a request, whose number is set by its first start."""
        return _Placed(self)

    @contextmanager
    def started(self, placed: _Placed) -> Generator[Take]:
        """Start an inference, as ``Turn.started``; the first start sets the request's number."""
        if self._process != os.getpid():
            self._begin(self._last[0])
        with self._lock:
            numbers = (n for n, one in enumerate(self._placed) if one() is placed)
            number = next(numbers, len(self._placed))
            last, ended = self._last
            turn = _Turn(ended)
            # As in NPUW, a round may end early: request 1 may begin another round at any time.
            if number and number != self._next():
                raise NpuwUsageError(
                    f"{NAME} = YES: request {number + 1} is started after request {last + 1}; "
                    "start requests in the order of their first inferences"
                )
            try:
                yield turn.take
                turn.has_begun = True
            finally:  # an interrupted start may still have begun the inference
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
        """Start without an inference to wait for; in a fork, the parent's inferences never end."""
        ended = threading.Event()
        ended.set()
        self._last: tuple[int, threading.Event] = last, ended
        """Number of the request started last, and an event set when its inference ended."""
        self._lock = threading.Lock()
        self._process = os.getpid()  # last: an interrupted _begin is repeated


class _Placed(Turn):
    """A request's place among others."""

    def __init__(self, order: InOrder) -> None:
        self._order = order

    def check_at_once(self) -> None:
        raise NpuwUsageError(f"{NAME} = YES: infer is not supported; use start_async and wait")

    def started(self) -> AbstractContextManager[Take]:
        return self._order.started(self)


class _Turn:
    """The turn of one inference.

    Args:
        before: event set when the previous inference has ended.
    """

    def __init__(self, before: threading.Event) -> None:
        self.ended = threading.Event()
        self.has_begun = False
        self._before = before

    def take(self, work: Work) -> None:
        """Wait for the end of the previous inference, successful or not, and do the work."""
        self.has_begun = True
        self._before.wait()
        try:
            work()
        finally:
            self.ended.set()


def order_of(options: Options) -> Callable[[], Turn]:
    """Return a function that creates the place of each request of a model."""
    return InOrder().place if options.run_inferences_sequentially else Turn
