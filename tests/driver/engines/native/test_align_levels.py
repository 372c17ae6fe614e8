"""Alignment of levels: rows of a matmul wait for each other if this adds no level."""

from __future__ import annotations

from collections.abc import Callable

from driver_layer.testing.small_programs import Add, Copy, Matmul, Side, Step

Shape = Callable[[list[Step]], tuple[int, int]]

EARLY = Matmul(0, act=0, weight=128, out=256, m=9, n=2, k=4, pitch=8)
LATE = Matmul(0, act=36, weight=128, out=328, m=9, n=2, k=4, pitch=8)
"""Later rows of the same matmul: equal weights, and adjoining rows."""

STORE = Copy(Side("cmx0", 256, 144, ()), Side("ddr", 0, 144, ()))


def later(levels: int) -> list[Step]:
    """Return successive tasks that the later rows depend on."""
    return [Add(0, 36, 36, 1, 16, 16, 16)] * levels


def test_early_rows_wait_for_late_rows(shape_of: Shape) -> None:
    # The first workload could run on the level of the first addition.
    assert shape_of([*later(2), EARLY, LATE, STORE]) == (2 + 1 + 1, 4)


def test_rows_whose_sums_are_needed_early_do_not_wait(shape_of: Shape) -> None:
    wanted = [Add(0, 256, 256, 1, 16, 16, 16)] * 4
    rows, phases = shape_of([*later(2), EARLY, LATE, *wanted, STORE])
    assert (rows, phases) == (2 + 2 + 4 + 1, 1 + 4 + 1)
