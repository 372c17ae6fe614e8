"""Copies of new rows into the KV cache, on all cores if the size warrants it.

Source: copy_kvcache and update_kvcache_for of NPUW's llm_infer_request
(docs/reference/npuw.md#kv-copies).
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
"""Minimum bytes for several threads; for fewer, waking threads takes longer than the copy."""


@dataclass(frozen=True, slots=True, eq=False)
class RowCopy:
    """The first ``rows`` rows of a present tensor, and their place in the past."""

    rows: int
    target: int | Array
    """Target of the first row, or i64 [rows]: the target of each."""


def copy_kvcache(present: Sequence[Array], past: Sequence[Array], plan: RowCopy) -> int:
    """Copy the rows that an inference produced to where the next inference reads them.

    Args:
        present: for each group of variables of equal layout [variables, width, heads, channels],
            rows in use first.
        past: for the same groups [variables, capacity, heads, channels].
        plan: rows and their target; one row after a generated token, a prompt's after prefill.

    Returns:
        The number of bytes copied.
    """
    pairs = list(zip(present, past, strict=True))
    total = sum(new[:, : plan.rows].nbytes for new, _ in pairs)
    if isinstance(plan.target, int):
        span = slice(plan.target, plan.target + plan.rows)
        parts = _threads() if total >= _WORTH_THREADS else 1
        jobs = [
            partial(_copy, list(_share(pairs, part, parts)), plan.rows, span)
            for part in range(parts)
        ]
        if len(jobs) > 1:
            _do_beside(jobs)
        else:
            jobs[0]()
    else:
        for new, old in pairs:
            old[:, plan.target] = new[:, : plan.rows]
    return total


def _do_beside(jobs: Sequence[Callable[[], None]]) -> None:
    """Run jobs on several threads, and wait for all even if a signal handler raises."""
    streams = _copiers()
    try:
        outcomes = [stream.submit(job) for stream, job in zip(cycle(streams), jobs, strict=False)]
        for outcome in outcomes:
            outcome.wait()
    except BaseException:
        for stream in streams:  # the caller may reuse the arrays only after the last copy
            stream.wait()
        raise
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error


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
    """Return the threads for copies, one set per process."""
    return [Stream(f"npuw-copy-{number}") for number in range(_threads())]
