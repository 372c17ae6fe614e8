"""Progress bars on terminals."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from tqdm import tqdm

_PATIENCE = 1.0
"""Seconds before a progress bar appears."""


@contextmanager
def progress(what: str, total: int, unit: str) -> Generator[Callable[[int], object]]:
    """Show a progress bar on a terminal after the first second; it disappears at the end.

    Args:
        what: description of the activity.
        total: total number of units.
        unit: name of the units; B for bytes.

    Yields:
        A function that advances the bar by a number of units.
    """
    with tqdm(
        desc=what,
        total=total,
        unit=unit,
        unit_scale=True,
        delay=_PATIENCE,
        leave=False,
        disable=None if sys.stderr is not None else True,
        file=sys.stderr,
    ) as bar:
        yield bar.update
