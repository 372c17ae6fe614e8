"""Progress of long activities: code that works reports it, a command listens and shows bars.

The listener belongs to the context (``contextvars``), so threads that work side by side each report
to their own. Without a listener, a report costs a look-up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tqdm import tqdm

_PATIENCE = 1.0
"""Seconds before the bar of an activity appears."""

_LINE = "{desc} {percentage:3.0f}% |{bar}| {n_fmt} of {total_fmt}{unit} [{elapsed}]"

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


@contextmanager
def progress_bars() -> Generator[None]:
    """Show the block's progress on stderr if that is a terminal; each bar disappears at its end."""
    if not sys.stderr.isatty():
        yield
        return
    bars = _Bars()
    try:
        with reported_to(bars.show):
            yield
    finally:
        bars.close()


class _Bars:
    """One bar for each activity that has begun and not ended."""

    def __init__(self) -> None:
        self._bars: dict[str, tqdm[Any]] = {}

    def show(self, activity: str, done: int, total: int, unit: str) -> None:
        """Receive a report; see ``progress.Listener``."""
        if activity not in self._bars:
            if done >= total:
                return
            self._bars[activity] = self._begin(activity, total, unit)
        bar = self._bars[activity]
        bar.update(done - bar.n)
        if done >= total:
            self._bars.pop(activity).close()

    def close(self) -> None:
        """Remove the bars of activities that failed."""
        for bar in reversed([*self._bars.values()]):
            bar.close()

    def _begin(self, activity: str, total: int, unit: str) -> tqdm[Any]:
        # Imported here: few commands run for long enough.
        from tqdm import tqdm

        return tqdm(
            desc=activity,
            total=total,
            unit=unit if unit == "B" else f" {unit}",
            unit_scale=total >= 10_000,
            bar_format=_LINE,
            delay=_PATIENCE,
            miniters=0,
            leave=False,
            file=sys.stderr,
        )
