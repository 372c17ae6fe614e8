"""Progress of long activities: code that works reports it, a command listens and shows it.

The listener belongs to the context (``contextvars``), so threads that work side by side each report
to their own. Without a listener, a report costs a look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, int, int, str], object]
"""Receiver of an activity, the units that are done, their total, and the unit's name (B: bytes).

An activity ends when all its units are done; it may begin again."""

_listener: ContextVar[Listener | None] = ContextVar("progress listener", default=None)


def report(activity: str, done: int, total: int, unit: str) -> None:
    """Report progress to the context's listener, if there is one; arguments as for a Listener."""
    listener = _listener.get()
    if listener is not None:
        listener(activity, done, total, unit)


@contextmanager
def reported_to(listener: Listener | None) -> Generator[None]:
    """Send the reports of a block to a listener; None drops them."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def counted(activity: str, total: int, unit: str) -> Generator[Callable[[int], object]]:
    """Report an activity that counts its own units; it ends with the block.

    Yields:
        A function that adds a number of units.
    """
    done = 0

    def advance(units: int) -> None:
        nonlocal done
        done += units
        report(activity, min(done, total), total, unit)

    report(activity, 0, total, unit)
    try:
        yield advance
    finally:
        report(activity, total, total, unit)
