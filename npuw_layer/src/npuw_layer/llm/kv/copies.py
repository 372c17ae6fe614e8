"""Copies of new rows into the KV cache, by all cores where it is worth it.

Source: copy_kvcache and update_kvcache_for of NPUW's llm_infer_request (fact sheet npuw §c.5).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import cycle

import numpy as np

from driver_layer.npu.stream import Stream
from npuw_layer.backends.protocols import Array

_WORTH_THREADS = 1 << 21
"""Bytes from which on several threads copy; below, waking them takes longer."""


@dataclass(frozen=True, slots=True, eq=False)
class RowCopy:
    """The first ``rows`` rows of a present tensor, and where they belong in the past."""

    rows: int
    target: int | Array
    """The row of the first one, or, i64 [rows], that of each."""


def copy_kvcache(present: Sequence[Array], past: Sequence[Array], plan: RowCopy) -> int:
    """Move the rows that an inference produced to where the next ones read them.

    Args:
        present: for variables that are alike [variables, width, heads, channels], those in use to
            the left.
        past: for the same ones [variables, capacity, heads, channels].
        plan: which rows go where; one row after a generated token, a prompt's after prefill.

    Returns:
        The bytes that were copied.
    """
    pairs = list(zip(present, past, strict=True))
    total = sum(new[:, : plan.rows].nbytes for new, _ in pairs)
    if isinstance(plan.target, int):
        span = slice(plan.target, plan.target + plan.rows)
        jobs = _jobs(pairs, plan.rows, span, total)
        if len(jobs) > 1:
            _do_beside(jobs)
        else:
            jobs[0]()
    else:
        for new, old in pairs:
            old[:, plan.target] = new[:, : plan.rows]
    return total


def _do_beside(jobs: Sequence[Callable[[], None]]) -> None:
    """Do jobs on several threads, and wait for all, also if a signal's handler raises."""
    streams = _copiers()
    try:
        outcomes = [stream.submit(job) for stream, job in zip(cycle(streams), jobs, strict=False)]
        for outcome in outcomes:
            outcome.wait()
    except BaseException:
        for stream in streams:  # what they copy from and to is not the caller's before
            stream.wait()
        raise
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error


def _jobs(
    pairs: Sequence[tuple[Array, Array]], rows: int, span: slice, total: int
) -> list[Callable[[], None]]:
    """The copies, in as many parts as are worth a thread each."""
    parts = _threads() if total >= _WORTH_THREADS else 1
    return [partial(_copy, list(_share(pairs, part, parts)), rows, span) for part in range(parts)]


def _share(
    pairs: Sequence[tuple[Array, Array]], part: int, parts: int
) -> Iterator[tuple[Array, Array]]:
    for new, old in pairs:
        variables = slice(part * len(new) // parts, (part + 1) * len(new) // parts)
        yield new[variables], old[variables]


def _copy(pairs: Sequence[tuple[Array, Array]], rows: int, span: slice) -> None:
    for new, old in pairs:
        np.copyto(old[:, span], new[:, :rows])


def _threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


@cache
def _copiers() -> Sequence[Stream]:
    """The process's threads."""
    return [Stream(f"npuw-copy-{number}") for number in range(_threads())]
