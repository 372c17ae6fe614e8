"""Work on several processors: half of it is done by a copy of this process."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def beside(
    work: Callable[[ItemT], ResultT], items: Sequence[ItemT], cost: Callable[[ItemT], float]
) -> list[ResultT]:
    """Do the same with each of some items, about half of it in a forked process.

    A process that is forked has all that this one has made so far, so that nothing is handed over
    but results. What it fails to do is done here again, which raises what there is to raise.

    Args:
        work: changes nothing; its results can be pickled.
        items: whose results are wanted.
        cost: about what one takes, beside others.
    """
    if len(items) < 2 or not _may_fork():
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
            said = pipe.read()
        _, status = os.waitpid(child, 0)
    theirs = pickle.loads(said) if status == 0 else [work(items[number]) for number in others]
    found |= dict(zip(others, theirs, strict=True))
    return [found[number] for number in range(len(items))]


def _halves(costs: Sequence[float]) -> tuple[list[int], list[int]]:
    """Share items, by their numbers: each, the dearest first, goes to who has less to do."""
    halves: tuple[list[int], list[int]] = ([], [])
    for number in sorted(range(len(costs)), key=lambda number: -costs[number]):
        min(halves, key=lambda half: sum(costs[one] for one in half)).append(number)
    return halves


def _may_fork() -> bool:
    """Whether there is a processor for another process, and no thread that it would be without."""
    if not hasattr(os, "fork") or threading.active_count() > 1:
        return False
    return (os.cpu_count() or 1) > 1


def _work_as_child(work: Callable[[ItemT], ResultT], items: Sequence[ItemT], writing: int) -> None:
    """Write results, and end: nothing of what the parent would do at its end is done twice."""
    status = 1
    try:
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump([work(item) for item in items], pipe)
        status = 0
    finally:
        os._exit(status)
