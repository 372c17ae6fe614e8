"""Progress bars of commands on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from driver_layer.support.progress import reported_to

if TYPE_CHECKING:
    from tqdm import tqdm

_PATIENCE = 1.0
"""Seconds before the bar of an activity appears."""

_LINE = "{desc} {percentage:3.0f}% |{bar}| {n_fmt} of {total_fmt}{unit} [{elapsed}]"


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
