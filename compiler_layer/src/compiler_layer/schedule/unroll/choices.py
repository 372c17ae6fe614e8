"""Matrices that are taken from a stack by their numbers, as DMA finds them when it runs."""

from __future__ import annotations

from compiler_layer.schedule.tasks import Region, Transfer
from compiler_layer.schedule.views import View


def load_numbers(choices: View, tiles: tuple[int, ...]) -> tuple[Transfer, Region]:
    """Bring the numbers of matrices, i64 [P], to where DMA looks them up."""
    numbers = Region.dense("choices", "i64", choices.shape, tiles)
    return Transfer(choices, numbers, tiles), numbers


def gather_rows(
    stack: View, rows: tuple[int, int], tiles: tuple[int, ...], number: Region
) -> tuple[Transfer, Region]:
    """Load whole rows of a matrix of a stack [e, n, k]: they lie side by side, so they are one run.

    Args:
        stack: where the matrices are, dense.
        rows: the first, and the one after the last.
        tiles: whose CMX they go to.
        number: which matrix, i64 [1] in CMX.

    Returns:
        The transfer, and the rows in CMX, [rows, k].
    """
    matrices, count, width = stack.shape
    runs = stack.reshaped((matrices, count * width))
    assert runs is not None  # weights are dense
    run = runs.sliced([slice(None), slice(rows[0] * width, rows[1] * width)])
    taken = rows[1] - rows[0]
    region = Region.dense(stack.buffer.name, stack.element, (1, taken * width), tiles)
    return Transfer(run, region, tiles, number), region.reshaped((taken, width))
