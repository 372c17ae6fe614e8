"""Copies, concatenations and gathers, also of matrices that a matmul chooses at run time."""

from __future__ import annotations

import math
from collections.abc import Iterator

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.schedule.layout import HardwareOp
from compiler_layer.schedule.tasks import Region, Step, Transfer
from compiler_layer.schedule.unroll.blocks import blocks, ranges
from compiler_layer.schedule.views import View
from driver_layer.abi.tasks import DMA_MAX_BYTES


def copies(source: View, target: View) -> Iterator[Transfer]:
    """Copy between views of one shape, in as many transfers as their size needs."""
    block = list(source.shape)
    while math.prod(block) * source.itemsize > DMA_MAX_BYTES:
        axis = next(i for i, d in enumerate(block) if d > 1)
        block[axis] = -(-block[axis] // 2)
    for begin, shape in blocks(source.shape, block):
        yield Transfer(source.block(begin, shape), target.block(begin, shape), ())


def unroll_copy(index: int, op: HardwareOp) -> Iterator[Step]:
    """Copy the operand to the result."""
    for transfer in copies(op.operands[0], op.results[0]):
        yield Step(index, work=[transfer])


def unroll_concat(index: int, op: HardwareOp, concat: npu.Concat) -> Iterator[Step]:
    """Copy each operand to its range of the result."""
    axis = int_value(concat.axis)
    (target,) = op.results
    begin = [0] * len(target.shape)
    step = Step(index)
    for part in op.operands:
        step.work += copies(part, target.block(begin, part.shape))
        begin[axis] += part.shape[axis]
    yield step


def unroll_gather(index: int, op: HardwareOp, budget: int) -> Iterator[Step]:
    """Load row indices into CMX, gather the rows to CMX, and store them."""
    table, indices = op.operands
    (target,) = op.results
    count, width = math.prod(indices.shape), table.shape[-1]
    numbers, rows = indices.reshaped((count,)), target.reshaped((count, width))
    assert numbers is not None  # lower-gather passes indices unchanged
    assert rows is not None  # the result is a dense tensor
    at_once = max(1, budget // (width * table.itemsize + 8))
    for begin, end in ranges(count, at_once):
        taken = end - begin
        listed = Region.dense("gather.rows", "i64", (taken,), (0,))
        gathered = Region.dense("gather", table.element, (taken, width), (0,))
        yield Step(
            index,
            loads=[Transfer(numbers.block((begin,), (taken,)), listed, (0,))],
            work=[Transfer(table, gathered, (0,), rows=listed)],
            stores=[Transfer(gathered, rows.block((begin, 0), (taken, width)), (0,))],
        )


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
