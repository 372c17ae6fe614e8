"""Says how far something is, where somebody is there to see it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from tqdm import tqdm

_PATIENCE = 1.0
"""Seconds that something may take without a word."""


@contextmanager
def progress(what: str, total: int, unit: str) -> Generator[Callable[[int], object]]:
    """Show a bar on a terminal from the second second on; it goes in the end.

    Args:
        what: what is going on.
        total: of what is counted.
        unit: what is counted: bytes are B.

    Yields:
        What is to be called with how much more is done.
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
