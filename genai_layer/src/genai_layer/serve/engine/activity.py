"""Work in progress on all models, and its end when the server shuts down.

Parts of the server that all models share, of which it is one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from genai_layer.serve.errors import ServeError, TimedOut, shutting_down
from genai_layer.serve.limits import Limits
from genai_layer.serve.metrics import Metrics

T = TypeVar("T")


class Work(Protocol):
    """Work that a client waits for."""

    def fail(self, error: ServeError) -> None:
        """End the work with an error; without effect if it has ended."""
        ...


class Activity:
    """Work in progress; used in the event loop's thread."""

    def __init__(self) -> None:
        self.stopping = False
        """True once the server shuts down."""
        self._works = set[Work]()
        self._idle = asyncio.Event()
        self._idle.set()

    def check(self) -> None:
        """Reject new work if the server shuts down.

        Raises:
            ShuttingDown: it does.
        """
        if self.stopping:
            raise shutting_down()

    def add(self, work: Work) -> None:
        """Note that work has begun."""
        self._works.add(work)
        self._idle.clear()

    def remove(self, work: Work) -> None:
        """Note that work has ended; further calls have no effect."""
        self._works.discard(work)
        if not self._works:
            self._idle.set()

    async def stop(self, grace: float) -> None:
        """Reject new work, wait for the work in progress, and end what is left.

        Args:
            grace: seconds to wait.
        """
        self.stopping = True
        try:
            await asyncio.wait_for(self._idle.wait(), grace)
        except TimeoutError:
            for work in list(self._works):
                work.fail(shutting_down())

    async def wait(self, work: asyncio.Future[T], timeout: float) -> T:
        """Wait for the result of work that goes on if the client leaves, e.g. of a thread.

        Raises:
            TimedOut: the work takes longer than ``timeout`` seconds.
            ShuttingDown: the server shuts down.
        """
        waiter = _Waiter()
        self.add(waiter)
        work.add_done_callback(_note_error)
        try:
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait({work, waiter.failed}, timeout=timeout, return_when=first)
        finally:
            self.remove(waiter)
        if work.done():
            return work.result()
        if waiter.failed.done():
            raise waiter.failed.result()
        raise timed_out(timeout)


class _Waiter:
    """Client that waits; satisfies ``Work``."""

    def __init__(self) -> None:
        self.failed: asyncio.Future[ServeError] = asyncio.get_running_loop().create_future()
        """Error that ends the wait."""

    def fail(self, error: ServeError) -> None:
        """End the wait with an error."""
        if not self.failed.done():
            self.failed.set_result(error)


def timed_out(timeout: float) -> TimedOut:
    """Return the error of a request that takes longer than ``timeout`` seconds."""
    return TimedOut(f"the request exceeds the time limit of {timeout:g} s; ask for less at a time")


def _note_error(work: asyncio.Future[Any]) -> None:
    """Read the error of work, as its client may have left; asyncio would log it otherwise."""
    if not work.cancelled():
        work.exception()


@dataclass(frozen=True, slots=True)
class Commons:
    """Limits of requests, metrics, and the work in progress."""

    limits: Limits
    metrics: Metrics
    activity: Activity
