"""Matrices that DMA gathers from a stack at run time, by their indices."""

from __future__ import annotations

from compiler_layer.schedule.tasks import Region, Transfer
from compiler_layer.schedule.views import View


def load_numbers(choices: View, tiles: tuple[int, ...]) -> tuple[Transfer, Region]:
    """Load the indices of matrices, i64 [P], to CMX, where DMA reads them."""
    numbers = Region.dense("choices", "i64", choices.shape, tiles)
    return Transfer(choices, numbers, tiles), numbers


def gather_rows(
    stack: View, rows: tuple[int, int], tiles: tuple[int, ...], number: Region
) -> tuple[Transfer, Region]:
    """Load complete rows of a matrix in a stack [e, n, k]: one run, because they are contiguous.

    Args:
        stack: the stored matrices, dense.
        rows: the first row, and the one after the last.
        tiles: tiles whose CMX is written.
        number: index of the matrix, i64 [1] in CMX.

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
