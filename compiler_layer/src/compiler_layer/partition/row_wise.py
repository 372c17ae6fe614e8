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
from functools import partial
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
    Tensor,
    element_of,
    known_axes,
    known_axis,
    shape_of,
    tensor,
    tensor_type,
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


def _along(axes: Callable[[Any], Sequence[int] | None], op: Operation, fixed: Fixed) -> Any:
    """Return the operand of an op that computes along the last dimension only."""
    del fixed
    last = len(shape_of(op.operands[0])) - 1
    return [op.operands[0]] if list(axes(op) or ()) == [last] else None


def _of_constant(op: MVN) -> Sequence[int] | None:
    axes = ints_of(op.axes)
    return None if axes is None else known_axes(axes, len(shape_of(op.x)))


def _of_property(op: Softmax | LogSoftmax) -> Sequence[int]:
    return [known_axis(int_value(op.axis), len(shape_of(op.x)))]


def _of_reduction(op: Reduction) -> Sequence[int] | None:
    return op.reduced_axes() if int_value(op.keep_dims) else None


def _of_cut(op: Slice) -> Sequence[int] | None:
    """Return the dimensions that are cut."""
    cuts = op.slices()
    sizes = shape_of(op.x)
    if cuts is None:
        return None
    whole = (range(size)[cut] == range(size) for size, cut in zip(sizes, cuts, strict=True))
    return [axis for axis, all_of_it in enumerate(whole) if not all_of_it]


def _joined(op: Concat, fixed: Fixed) -> Sequence[SSAValue] | None:
    del fixed
    rank = len(shape_of(op.output))
    return list(op.parts) if known_axis(int_value(op.axis), rank) == rank - 1 else None


_Rule = Callable[[Any, Fixed], "Sequence[SSAValue] | None"]

_RULES: Sequence[tuple[type[Operation] | UnionType, _Rule]] = (
    (ELEMENTWISE | FakeQuantize | FakeConvert, _each),
    (MatMul, _product),
    (RMS, _normalised),
    (MVN, partial(_along, _of_constant)),
    (Softmax | LogSoftmax, partial(_along, _of_property)),
    (Reduction, partial(_along, _of_reduction)),
    (Slice, partial(_along, _of_cut)),
    (Split | VariadicSplit, partial(_along, lambda op: [op.known_axis()])),
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

    def kind(value: SSAValue) -> Tensor:
        if value not in rows.values:
            return tensor_type(value)
        *before, _, width = shape_of(value)
        return tensor(element_of(value), (*before, count, width))

    made, arguments = Model.build([(port.name, kind(port.value)) for port in model.inputs])
    copies: dict[SSAValue, SSAValue] = dict(zip(model.body.args, arguments, strict=True))
    for op in model.body.ops:
        if op is model.terminator:
            continue
        copy = op.clone(copies)
        made.body.insert_op_before(copy, made.terminator)
        if isinstance(copy, OvOp):
            copy.refresh_types()
        copies.update(zip(op.results, copy.results, strict=True))
    made.set_outputs([(port.name, copies[port.value]) for port in model.outputs])
    return made
