"""Output of sums: scaled, accumulated, and rounded to the output's type."""

from __future__ import annotations

from dataclasses import dataclass

from driver_layer.engines.native.dpu.problem import SIZES
from driver_layer.engines.native.dpu.task import KernelArguments
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.jit.emitter import F32, I32, I64, Value
from driver_layer.engines.native.jit.memory_types import store_f32


@dataclass(frozen=True, slots=True)
class SumTile:
    """Sums in scratch: rows of f32, or of i32 for integer activations."""

    base: Value
    pitch: Value
    """Bytes from row to row."""
    whole: bool = False
    """True if the sums are i32."""
    scales: Value | None = None
    """Address of f32 scales of the tile's columns, if they are still to be applied."""


@dataclass(frozen=True, slots=True)
class TaskRange:
    """A range of rows or columns of a task."""

    begin: Value
    count: Value


def finish(
    task: KernelArguments, tile: SumTile, batch: Value, spans: tuple[TaskRange, TaskRange]
) -> None:
    """Store the rows and columns of a tile, which begins at the spans' begins."""
    problem, e, (rows, columns) = task.problem, task.e, spans
    b, lanes = e.b, e.lanes
    size = SIZES[problem.out]
    dense = b.icmp_signed("==", task[Word.OUT_N], I64(size))
    whole = b.and_(columns.count, I64(-lanes))
    vectors = b.select(dense, whole, I64(0))
    with e.loop(0, rows.count) as row:
        m = b.add(rows.begin, row)
        first = task.address(
            Word.OUT, (batch, Word.OUT_B), (m, Word.OUT_M), (columns.begin, Word.OUT_N)
        )
        sums = e.at(tile.base, b.mul(row, tile.pitch))
        factor = row_factor(task, m)

        def element(column: Value, width: int) -> None:
            value = e.load(e.at(sums, b.mul(column, I64(4))), I32 if tile.whole else F32, width)
            if tile.whole:
                value = b.sitofp(value, e.vector(F32, width))
            if tile.scales is not None:
                scales = e.load(e.at(tile.scales, b.mul(column, I64(4))), F32, width)
                value = b.fmul(value, scales)
            if factor is not None:
                value = b.fmul(value, e.splat(factor, width))
            value = b.fmul(value, e.splat(task.alpha, width))
            address = e.at(first, b.mul(column, task[Word.OUT_N]))
            if problem.accumulate:
                value = b.fadd(value, e.load(address, F32, width))
            store_f32(e, value, address, problem.out, width)

        with e.loop(0, vectors, lanes) as column:
            element(column, lanes)
        with e.loop(vectors, columns.count) as column:
            element(column, 1)


def row_factor(task: KernelArguments, m: Value) -> Value | None:
    """Load the scale of a row; None if rows have no scales."""
    if not task.problem.row_scales:
        return None
    return task.e.load(task.address(Word.ACT_SCALE, (m, Word.ACT_SCALE_M)), F32)
