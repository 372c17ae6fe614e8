"""Scales and zero points, converted to f32 in scratch."""

from __future__ import annotations

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu.finish import TaskRange
from driver_layer.engines.native.dpu.rows import Row, widen_row
from driver_layer.engines.native.dpu.task import KernelArguments
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.jit.emitter import I64, Value


def take_table(
    task: KernelArguments,
    table: Word,
    kind: DType,
    groups: Value,
    target: Value,
    columns: TaskRange | None = None,
) -> None:
    """Write a table as f32, a row of groups for each column.

    Args:
        task: the kernel's arguments.
        table: ``SCALE`` or ``ZERO``.
        kind: element type of the table.
        groups: number of groups of a column.
        target: address to write to.
        columns: columns to convert; by default all.
    """
    e, b = task.e, task.e.b
    along_n, along_k = (
        (Word.SCALE_N, Word.SCALE_GROUP) if table is Word.SCALE else (Word.ZERO_N, Word.ZERO_GROUP)
    )
    dense = b.icmp_signed("==", task[along_n], b.mul(groups, task[along_k]))
    taken = TaskRange(I64(0), task[Word.N]) if columns is None else columns
    rows = b.select(dense, I64(1), taken.count)
    count = b.select(dense, b.mul(taken.count, groups), groups)
    with e.loop(0, rows) as n:
        address = task.address(table, (b.add(taken.begin, n), along_n))
        place = e.at(target, b.mul(b.mul(n, groups), I64(4)))
        widen_row(e, Row(kind, address, task[along_k], count), place)
