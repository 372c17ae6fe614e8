"""Rows of a product wait for each other, where that costs no level."""

from __future__ import annotations

from collections.abc import Callable

from driver_layer.testing.small_programs import Add, Copy, Product, Side, Step

Shape = Callable[[list[Step]], tuple[int, int]]

EARLY = Product(0, act=0, weight=128, out=256, m=9, n=2, k=4, pitch=8)
LATE = Product(0, act=36, weight=128, out=328, m=9, n=2, k=4, pitch=8)
"""Of one product: the same weights, and the rows that follow."""

STORE = Copy(Side("cmx0", 256, 144, ()), Side("ddr", 0, 144, ()))


def later(levels: int) -> list[Step]:
    """Tasks, one after the other, that the second rows wait for."""
    return [Add(0, 36, 36, 1, 16, 16, 16)] * levels


def test_rows_that_are_ready_wait_for_the_others(shape_of: Shape) -> None:
    # The first product could run beside the first addition.
    assert shape_of([*later(2), EARLY, LATE, STORE]) == (2 + 1 + 1, 4)


def test_rows_whose_sums_are_wanted_do_not_wait(shape_of: Shape) -> None:
    wanted = [Add(0, 256, 256, 1, 16, 16, 16)] * 4
    rows, phases = shape_of([*later(2), EARLY, LATE, *wanted, STORE])
    assert (rows, phases) == (2 + 2 + 4 + 1, 1 + 4 + 1)
