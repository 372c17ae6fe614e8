"""Dispatch: threads run every row of a table once, and phases one after the other."""

from __future__ import annotations

import ctypes
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.engines.native.dispatch.table import Streams, Table
from driver_layer.engines.native.dispatch.team import Team
from driver_layer.engines.native.jit.cache import ObjectCache
from driver_layer.engines.native.jit.emitter import I64, Emitter
from driver_layer.engines.native.jit.host import Host, detect
from driver_layer.engines.native.jit.kernels import Kernels, KernelSpec


def _write_count(host: Host) -> str:
    """Write a kernel that adds another number plus one to a number; negative ones fail."""
    e = Emitter(host)
    mine, before = e.pointer(0), e.pointer(1)
    seen = e.load(before, I64)
    e.fail(e.b.icmp_signed("<", seen, I64(0)), 1)
    e.store(e.b.add(e.load(mine, I64), e.b.add(seen, I64(1))), mine)
    return e.finish()


COUNT = KernelSpec("test count", _write_count)
KERNELS = Kernels(detect(), ObjectCache(None))
TEAMS = {threads: Team(KERNELS, threads) for threads in (1, 2, 3)}


class Counting:
    """A table whose rows record their phase: each row reads a result of the previous phase.

    Args:
        shape: the rows of each unit, by queue and phase.
    """

    def __init__(self, shape: list[list[list[int]]]) -> None:
        queues = len(shape[0])
        units = [rows for phase in shape for queue in phase for rows in queue]
        counts = [[len(queue) for queue in phase] for phase in shape]
        total = sum(units)
        self.phase = np.repeat(
            np.arange(len(shape)), [sum(sum(queue) for queue in phase) for phase in shape]
        )
        self.numbers = np.zeros(total + 1, np.int64)  # the last one stands for "before phase 0"
        first = np.searchsorted(self.phase, self.phase) - 1
        self.words = np.zeros((total, 2), np.int64)
        self.words[:, 0] = self.numbers.ctypes.data + 8 * np.arange(total)
        self.words[:, 1] = self.numbers.ctypes.data + 8 * np.where(first < 0, total, first)
        rows = np.zeros((total, 2), np.int64)
        rows[:, 0] = KERNELS.address(COUNT)
        rows[:, 1] = self.words.ctypes.data + 16 * np.arange(total)
        inner = np.cumsum([0, *(count for phase in counts for count in phase)])
        index = queues * np.arange(len(shape))[:, None] + np.arange(queues + 1)
        bounds = inner[index].astype(np.int64)
        begins = np.cumsum([0, *units]).astype(np.int64)
        # Prefetching has no effect on results, even for unmapped addresses.
        spans = np.array([[self.numbers.ctypes.data, 100], [1 << 40, 5000]], np.int64)
        ahead = np.zeros((len(shape), queues, 2), np.int64)
        ahead[..., 1] = 2
        self.table = Table(
            rows, begins, bounds, 0, Streams(spans, ahead), np.zeros(0, np.int64), None
        )


shapes = st.integers(1, 3).flatmap(
    lambda queues: st.lists(
        st.lists(st.lists(st.integers(1, 3), max_size=4), min_size=queues, max_size=queues).filter(
            any
        ),
        min_size=1,
        max_size=6,
    )
)


@settings(max_examples=18, deadline=None)
@given(shape=shapes, threads=st.sampled_from(sorted(TEAMS)))
def test_every_row_runs_once_and_after_all_rows_of_the_previous_phase(
    shape: list[list[list[int]]], threads: int
) -> None:
    counting = Counting(shape)
    for _ in range(3):
        counting.numbers[:] = 0
        TEAMS[threads].run(counting.table)
        assert counting.table.failure is None
        assert np.array_equal(counting.numbers[:-1], counting.phase + 1)


@pytest.mark.parametrize("threads", sorted(TEAMS))
def test_helpers_join_runs_that_follow_immediately_or_after_a_pause(
    threads: int,
) -> None:
    tables = [Counting([[[1, 2], [1]]] * phases) for phases in (1, 5)]
    for number in range(400):
        counting = tables[number % 2]
        counting.numbers[:] = 0
        TEAMS[threads].run(counting.table)
        assert np.array_equal(counting.numbers[:-1], counting.phase + 1)
        if number % 50 == 0:  # longer than a helper spins
            time.sleep(0.02)


def _busy(row_seconds: float) -> tuple[Table, np.ndarray]:
    """Return a table of four slow units, and the array that records their threads."""
    threads = np.zeros(4, np.int64)

    def note(number: int) -> int:
        threads[number] = threading.get_ident()
        time.sleep(row_seconds)
        return 0

    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
    code = kind(lambda number, _: note(number or 0))
    rows = np.zeros((4, 2), np.int64)
    rows[:, 0] = ctypes.cast(code, ctypes.c_void_p).value
    rows[:, 1] = np.arange(4)
    bounds = np.array([[0, 2, 4]], np.int64)
    return Table(
        rows, np.arange(5), bounds, 0, Streams.none(bounds), np.zeros(0, np.int64), code
    ), threads


def test_threads_share_a_table() -> None:
    table, threads = _busy(0.05)
    for _ in range(3):
        TEAMS[2].run(table)
        assert len({*threads.tolist()}) == 2
        time.sleep(0.02)


@pytest.mark.parametrize("threads", sorted(TEAMS))
def test_a_failing_row_ends_the_run_after_its_phase(threads: int) -> None:
    counting = Counting([[[1], [2]], [[1], []], [[3], [1]]])
    counting.words[3, 1] = counting.numbers.ctypes.data + 8 * 3  # row 3 reads its own number
    counting.numbers[3] = -5
    TEAMS[threads].run(counting.table)
    assert counting.table.failure == 3
    assert counting.numbers.tolist() == [1, 1, 1, -5, 0, 0, 0, 0, 0]
