"""Parallel work on two processors, by forking this process."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def map_forked(
    work: Callable[[ItemT], ResultT], items: Sequence[ItemT], cost: Callable[[ItemT], float]
) -> list[ResultT]:
    """Apply a function to all items, to about half of them in a forked process.

    The fork shares all objects of this process, so only results are transferred. If it fails, its
    items are computed here again, which raises their errors.

    Args:
        work: the function; without side effects; its results can be pickled.
        items: the items.
        cost: approximate relative cost of an item.
    """
    # A fork needs a second processor, and would lose all other threads.
    may_fork = hasattr(os, "fork") and threading.active_count() == 1 and (os.cpu_count() or 1) > 1
    if len(items) < 2 or not may_fork:
        return [work(item) for item in items]
    own, others = _halves([cost(item) for item in items])
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _work_as_child(work, [items[number] for number in others], writing)
    os.close(writing)
    try:
        found = {number: work(items[number]) for number in own}
    finally:
        with os.fdopen(reading, "rb") as pipe:
            written = pipe.read()
        _, status = os.waitpid(child, 0)
    theirs = pickle.loads(written) if status == 0 else [work(items[number]) for number in others]
    found |= dict(zip(others, theirs, strict=True))
    return [found[number] for number in range(len(items))]


def _halves(costs: Sequence[float]) -> tuple[list[int], list[int]]:
    """Distribute item numbers: the most expensive first, each to the half with less cost."""
    halves: tuple[list[int], list[int]] = ([], [])
    for number in sorted(range(len(costs)), key=lambda number: -costs[number]):
        min(halves, key=lambda half: sum(costs[one] for one in half)).append(number)
    return halves


def _work_as_child(work: Callable[[ItemT], ResultT], items: Sequence[ItemT], writing: int) -> None:
    """Write the results, and exit without the parent's exit handlers."""
    status = 1
    try:
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump([work(item) for item in items], pipe)
        status = 0
    finally:
        os._exit(status)
