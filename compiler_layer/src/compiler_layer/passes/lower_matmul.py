"""Lowering of matmuls to the DPU."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.ir import SSAValue

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.matmul import MatMul
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE, int_value
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.shape import Reshape
from compiler_layer.dialects.ov.types import Shape, element_of, shape_of
from compiler_layer.elements import FLOAT8, FOUR_BIT
from compiler_layer.errors import UnsupportedModel
from compiler_layer.passes.route_experts import is_choice
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.match import producer, stored_constant
from compiler_layer.rewriting.nibbles import widened
from compiler_layer.rewriting.replace import replace, reshape_before
from driver_layer.abi.tasks import DPU_MAX_DIM

DPU_FLOATS = ("f32", "f16", "bf16")
"""Operand types of the DPU."""

DPU_INTEGERS = ("i8", "u8", "i4", "u4")
"""Types of weights with zero points."""


DPU_WEIGHTS = (*DPU_INTEGERS, *sorted(FLOAT8))
"""Types of weights that the DPU scales itself; 8-bit floats may have no scales."""


def _operand(value: SSAValue) -> SSAValue:
    """Return a weight in its stored type, and other operands before they are widened to f32."""
    constant = stored_constant(value)
    if constant is not None and element_of(constant.output) not in FLOAT8:
        return constant.output
    widening = producer(value, Convert)
    if widening is not None and element_of(value) == "f32" and element_of(widening.x) in DPU_FLOATS:
        return widening.x
    return value


def _weight(value: SSAValue) -> SSAValue:
    """Return a weight as ``_operand`` does, and 8-bit floats in their stored type."""
    constant = stored_constant(value)
    return _operand(value) if constant is None else constant.output


def _widened(op: MatMul) -> Convert | None:
    """Return the conversion to f32 that is the only user; the DPU converts while storing."""
    user = op.output.get_user_of_unique_use()
    if isinstance(user, Convert) and user.destination_type.data == "f32":
        return user
    return None


@dataclass(frozen=True, slots=True)
class _Quantised:
    """A quantised weight [N, K] with its tables [N, groups]."""

    stored: SSAValue
    scales: SSAValue
    zeros: SSAValue | None


def _quantised(op: MatMul) -> _Quantised | None:
    """Return a matmul's compressed weight in the DPU's form; None if the DPU cannot read it."""
    reshape = producer(op.b, Reshape)
    weights = producer(op.b if reshape is None else reshape.x, Dequantize)
    if weights is None or not int_value(op.transpose_b):
        return None
    if element_of(weights.stored) not in DPU_WEIGHTS or len(shape_of(op.b)) != 2:
        return None
    rows, channels = shape_of(op.b)
    groups = _groups(weights, rows, channels)
    if groups is None or (element_of(weights.stored) in FOUR_BIT and channels // groups % 2):
        return None
    rank = len(shape_of(weights.stored))
    scales = _table(op, weights.scale, rank)
    zeros = _table(op, weights.zero, rank) if weights.zero is not None else None
    stored = weights.stored
    if shape_of(stored) != (rows, channels):
        stored = reshape_before(op, stored, (rows, channels))
    return _Quantised(stored, scales, zeros)


def _groups(weights: Dequantize, rows: int, channels: int) -> int | None:
    """Return the groups per row; stored is [N, K] or [N, groups, channels of a group]."""
    stored = shape_of(weights.stored)
    groups = stored[1] if len(stored) == 3 else 1
    if stored not in ((rows, channels), (rows, groups, channels // groups)):
        return None
    for table in filter(None, (weights.scale, weights.zero)):
        shape = (1,) * (len(stored) - len(shape_of(table))) + shape_of(table)
        if shape[-1] != 1:
            return None
    return groups


def _table(op: MatMul, table: SSAValue, rank: int) -> SSAValue:
    """Return a table as [N, groups], with dimensions of 1 where entries are shared."""
    # Tables are [N, 1] for weights [N, K], and [N, groups, 1] for grouped weights.
    table = _in_bytes(op, table)
    dims = ((1,) * (rank - len(shape_of(table))) + shape_of(table))[:2]
    return table if shape_of(table) == dims else reshape_before(op, table, dims)


def _in_bytes(op: MatMul, table: SSAValue) -> SSAValue:
    """Return a table with one byte per entry; zero points are few."""
    return widened(op, table) if element_of(table) in FOUR_BIT else table


def _chosen(op: MatMul) -> tuple[_Quantised | SSAValue, SSAValue]:
    """Return the stack [E, N, K] of a matmul's matrices, and the chosen indices [P].

    A quantised stack has tables [E, N, groups].

    Raises:
        UnsupportedModel: the DPU cannot read the matrices in their layout.
    """
    name, channels = op.friendly_name, shape_of(op.b)[-1]
    if channels > DPU_MAX_DIM:
        why = f"has {channels} channels; the DPU takes at most {DPU_MAX_DIM} for gathered weights"
        raise UnsupportedModel(f"MatMul {name!r} {why}")
    found = _stack(op)
    if found is None:
        raise UnsupportedModel(f"MatMul {name!r}: the gathered weights are not stored as [E, N, K]")
    return found


def _stack(op: MatMul) -> tuple[_Quantised | SSAValue, SSAValue] | None:
    """Return the same as ``_chosen``; None if matrices or tables have another layout."""
    if not int_value(op.transpose_b) or len(shape_of(op.b)) != 3:
        return None
    _, rows, channels = shape_of(op.b)
    value = op.b
    while (view := producer(value, Reshape) or producer(value, Convert)) is not None:
        value = view.x
    weights, gather = producer(value, Dequantize), producer(value, Gather)
    if gather is not None:
        return gather.data, gather.indices
    stacks = [producer(x, Gather) for x in weights.operands] if weights is not None else []
    known = [stack for stack in stacks if stack is not None]
    if weights is None or len(known) < len(stacks):
        return None
    data = [stack.data for stack in known]
    experts, groups = shape_of(data[0])[0], math.prod(shape_of(data[1])[2:])
    if element_of(data[0]) in FOUR_BIT and channels // groups % 2:
        return None
    if element_of(data[0]) not in DPU_WEIGHTS or shape_of(data[1])[:2] != (experts, rows):
        return None
    if any(shape_of(table) != shape_of(data[1]) for table in data[2:]):
        return None
    tables = [_in_bytes(op, table) for table in data[1:]]
    shaped = [_shaped(op, table, (experts, rows, groups)) for table in tables]
    stored = _shaped(op, data[0], (experts, rows, channels))
    return _Quantised(stored, shaped[0], shaped[1] if shaped[1:] else None), known[0].indices


def _shaped(op: MatMul, value: SSAValue, shape: Shape) -> SSAValue:
    return value if shape_of(value) == shape else reshape_before(op, value, shape)


def matmul_refusal(op: MatMul) -> str | None:
    """Return why the DPU cannot run a matmul, or None."""
    if len(shape_of(op.a)) < 2 or len(shape_of(op.b)) < 2:
        return "with a vector"
    elements = [element_of(x) for x in (_operand(op.a), _operand(op.b), op.output)]
    return None if set(elements) <= set(DPU_FLOATS) else f"of {' and '.join(elements[:2])}"


def _lower(op: MatMul) -> None:
    refusal = matmul_refusal(op)
    if refusal is not None:
        raise UnsupportedModel(f"MatMul {op.friendly_name!r} {refusal}")
    last = _widened(op) or op
    b, quantised, choices = _weight(op.b), _quantised(op), []
    if is_choice(op.b):
        stack, numbers = _chosen(op)
        choices = [numbers]
        if isinstance(stack, _Quantised):
            quantised = stack
        else:
            b = _weight(stack)
    scales, zeros = [], []
    if quantised is not None:
        b, scales = quantised.stored, [quantised.scales]
        zeros = [quantised.zeros] if quantised.zeros is not None else []
    lowered = npu.MatMul(
        operands=[_operand(op.a), b, scales, zeros, [], choices],
        properties={"transpose_a": op.transpose_a, "transpose_b": op.transpose_b},
        result_types=[last.results[0].type],
    )
    if last is not op and NAME_ATTRIBUTE in op.attributes:
        last.attributes[NAME_ATTRIBUTE] = op.attributes[NAME_ATTRIBUTE]
    replace(last, lowered)


class LowerMatMul(OpPass):
    """Lower matmuls to the DPU.

    Before:  %w = ov.Convert(%stored : …xbf16) : …xf16 ; %y = ov.MatMul(%x, %w)
    After:   %y = npu.matmul(%x, %stored)

    Before:  %w = ov.Reshape(ov.Dequantize(%stored : 8x2x4xi4, %scale)) ; %y = ov.MatMul(%x, %w)
    After:   %y = npu.matmul(%x, %stored) scales %scale

    Before:  %w = ov.Gather(%stack : 7x8x4xf16, %numbers) ; %y = ov.MatMul(%x, %w)
    After:   %y = npu.matmul(%x, %stack) choices %numbers

    The DPU widens and scales operands itself, so conversions of weights disappear, and so do
    conversions of other operands to f32. A conversion of the result to f32 disappears as well,
    because the DPU accumulates in f32.

    Raises:
        UnsupportedModel: a matmul with a vector or of integers, or with gathered weights that are
            not stored as a stack of matrices.
    """

    name = "lower-matmul"
    rewrites = ((MatMul, _lower),)
