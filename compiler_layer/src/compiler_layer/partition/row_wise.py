"""Row-wise ops: each row of the result depends on one row, so they may run in tiles of rows.

Rows are along the last dimension but one, and dimensions before it are 1: [1, rows, C], as in the
hidden states of a prompt. A tile's rows are therefore contiguous. Each operand of a row-wise op is
either rows, where row r of the result depends on row r only, or common to all rows, as weights are.

All other ops count as mixing rows: attention, reductions and softmax over rows, matmuls that sum
over rows, reshapes, which may fold rows, and tables that differ by row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any

from xdsl.ir import BlockArgument, Operation, SSAValue

from compiler_layer.dialects.ov.attention import RMS
from compiler_layer.dialects.ov.constant import ints_of
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.quantize import FakeConvert, FakeQuantize
from compiler_layer.dialects.ov.reduce import MVN, LogSoftmax, Reduction, Softmax
from compiler_layer.dialects.ov.slicing import Concat, Slice, Split, VariadicSplit
from compiler_layer.dialects.ov.types import (
    shape_of,
)
from compiler_layer.model import Model
from compiler_layer.partition.parts import fixed_ops
from compiler_layer.rewriting.match import ELEMENTWISE

Fixed = Collection[Operation]
"""Ops whose value depends on constants alone (``fixed_ops``)."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a row-wise model.

    Attributes:
        count: the number of rows.
        values: values that are rows, including the model's inputs and outputs.
    """

    count: int
    values: frozenset[SSAValue]


def find_rows(model: Model) -> Rows | None:
    """Return the rows of a model, or None if an op mixes rows.

    Args:
        model: static and pure; not changed.
    """
    fixed = fixed_ops(model)
    rows: set[SSAValue] = set()
    common: set[SSAValue] = set()
    for op in model.body.ops:
        if op in fixed or op is model.terminator:
            continue
        own = row_operands(op, fixed)
        if own is None:
            return None
        rows.update(own, op.results)
        common.update(operand for operand in op.operands if operand not in own)
    rows.update(port.value for port in model.outputs)
    counts = {row_count(value) for value in rows}
    # A weight must not depend on rows, nor an output on weights alone.
    if len(counts) != 1 or None in counts or rows & common or _made_of(rows, fixed):
        return None
    (count,) = counts
    return None if count is None else Rows(count, frozenset(rows))


def row_count(value: SSAValue) -> int | None:
    """Return the number of rows of a value, or None if it has further dimensions."""
    shape = shape_of(value)
    if len(shape) < 2 or any(size != 1 for size in shape[:-2]):
        return None
    return shape[-2]


def row_operands(op: Operation, fixed: Fixed) -> Sequence[SSAValue] | None:
    """Return the operands of an op that are rows, or None if it mixes rows.

    Args:
        op: not a fixed op.
        fixed: ops whose value depends on constants alone.
    """
    found = next((rule for kinds, rule in _RULES if isinstance(op, kinds)), None)
    counts = {row_count(result) for result in op.results}
    if found is None or len(counts) != 1 or None in counts:
        return None
    (count,) = counts
    rows = found(op, fixed)
    if not rows or any(row_count(value) != count for value in rows) or _made_of(rows, fixed):
        return None
    return rows


def _made_of(values: Iterable[SSAValue], fixed: Fixed) -> bool:
    """Return whether any of some values depends on constants alone."""
    return any(value.owner in fixed for value in values)


def _each(op: Operation, fixed: Fixed) -> Sequence[SSAValue] | None:
    """Return the row operands of an element-wise op; the others broadcast to rows."""
    rows = [x for x in op.operands if not _is_common(x)]
    single = row_count(op.results[0]) == 1  # an op on one row still computes rows
    return [x for x in op.operands if x.owner not in fixed] if single else rows


def _is_common(value: SSAValue) -> bool:
    """Return whether a value is broadcast along rows."""
    shape = shape_of(value)
    return len(shape) < 2 or shape[-2] == 1


def _product(op: MatMul, fixed: Fixed) -> Sequence[SSAValue] | None:
    """Return the left operand of a matmul with a matrix that is constant or an input."""
    known = op.b.owner in fixed or isinstance(op.b, BlockArgument)
    return [op.a] if known and not int_value(op.transpose_a) else None


def _normalised(op: RMS, fixed: Fixed) -> Sequence[SSAValue] | None:
    del fixed
    return [op.x] if op.gamma is None or _is_common(op.gamma) else None


def _along_last(op: AlongAxes | Slice | Split | VariadicSplit, fixed: Fixed) -> list[SSAValue]:
    """Return the operand of an op that computes, or cuts, along the last dimension only."""
    del fixed
    last = len(shape_of(op.x)) - 1
    if isinstance(op, Slice):
        every = [range(size) for size in shape_of(op.x)]
        cut = [
            axis for axis, one in enumerate(op.slices() or ()) if every[axis][one] != every[axis]
        ]
        alone = cut == [last]
    elif isinstance(op, Split | VariadicSplit):
        alone = op.known_axis() == last
    else:
        alone = is_along_last(op)
    return [op.x] if alone else []


AlongAxes = Reduction | Softmax | LogSoftmax | MVN


def is_along_last(op: AlongAxes) -> bool:
    """Return whether an op computes along the last dimension only, and keeps it."""
    rank = len(shape_of(op.x))
    if isinstance(op, Reduction):
        return bool(int_value(op.keep_dims)) and op.reduced_axes() == [rank - 1]
    axes = ints_of(op.axes) if isinstance(op, MVN) else [int_value(op.axis)]
    return [axis % rank for axis in axes or ()] == [rank - 1]


def _joined(op: Concat, fixed: Fixed) -> Sequence[SSAValue] | None:
    del fixed
    return list(op.parts) if op.known_axis() == len(shape_of(op.output)) - 1 else None


_Rule = Callable[[Any, Fixed], "Sequence[SSAValue] | None"]

_RULES: Sequence[tuple[type[Operation] | UnionType, _Rule]] = (
    (ELEMENTWISE | FakeQuantize | FakeConvert, _each),
    (MatMul, _product),
    (RMS, _normalised),
    (AlongAxes | Slice | Split | VariadicSplit, _along_last),
    (Concat, _joined),
)
"""Rule for each kind of op, which returns the operands that are rows."""


def row_wise_ops(model: Model) -> Iterator[tuple[Operation, int]]:
    """Yield the row-wise ops of a model, and their numbers of rows."""
    fixed = fixed_ops(model)
    for op in model.body.ops:
        if op not in fixed and op is not model.terminator and row_operands(op, fixed) is not None:
            count = row_count(op.results[0])
            assert count is not None  # row_operands() ensures it
            yield op, count


def tile_model(model: Model, rows: Rows, count: int) -> Model:
    """Copy a row-wise model for any ``count`` of its rows.

    Args:
        model: not changed.
        rows: the model's rows (``find_rows``).
        count: the number of rows of a tile.
    """
    made = model.clone()
    for port in model.inputs:
        if port.value in rows.values:
            *before, _, width = shape_of(port.value)
            made.set_input_shapes({port.name: (*before, count, width)})
    for op in made.body.ops:
        if isinstance(op, OvOp):
            op.refresh_types()
    made.refresh_signature()
    return made
