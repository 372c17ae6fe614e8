"""Scales and zero points, as f32 in registers or in scratch."""

from __future__ import annotations

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu.finish import TaskRange
from driver_layer.engines.native.dpu.rows import Row, widen_row
from driver_layer.engines.native.dpu.task import KernelArguments
from driver_layer.engines.native.dpu.words import TABLE_STRIDES, Word
from driver_layer.engines.native.jit.emitter import I32, I64, Value


def column_numbers(
    task: KernelArguments, table: Word, place: tuple[Value, Value], width: int
) -> Value | None:
    """Return scales or zero points of ``width`` columns, repeating the task's last column.

    ``place`` is (first column, group). None if columns have none of their own.
    """
    if not task.by_column(table):
        return None
    e, (n, group) = task.e, place
    b = e.b
    last = b.sub(task[Word.N], I64(1))
    result = e.zero(width)
    for lane in range(width):
        one = task.number(table, task.least(b.add(n, I64(lane)), last), group)
        result = b.insert_element(result, one, I32(lane)) if width > 1 else one
    return result


def dequantised(
    task: KernelArguments, number: Value, zero: Value | None, scale: Value | None
) -> Value:
    """Return weights less their zero points, times their scales; None for missing ones."""
    b = task.e.b
    number = number if zero is None else b.fsub(number, zero)
    return number if scale is None else b.fmul(number, scale)


def take_table(
    task: KernelArguments,
    table: Word,
    groups: Value,
    target: Value,
    columns: TaskRange | None = None,
) -> None:
    """Write a table as f32, a row of groups for each column; nothing without a table.

    Args:
        task: the kernel's arguments.
        table: ``SCALE`` or ``ZERO``.
        groups: number of groups of a column.
        target: address to write to.
        columns: columns to convert; by default all.
    """
    e, b, kind = task.e, task.e.b, task.kind(table)
    if kind is DType.UNSET:
        return
    along_n, along_k = TABLE_STRIDES[table]
    dense = b.icmp_signed("==", task[along_n], b.mul(groups, task[along_k]))
    taken = TaskRange(I64(0), task[Word.N]) if columns is None else columns
    rows = b.select(dense, I64(1), taken.count)
    count = b.select(dense, b.mul(taken.count, groups), groups)
    with e.loop(0, rows) as n:
        address = task.address(table, (b.add(taken.begin, n), along_n))
        place = e.at(target, b.mul(b.mul(n, groups), I64(4)))
        widen_row(e, Row(kind, address, task[along_k], count), place)
