"""Constant folding."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.constant import Constant, constant_of
from compiler_layer.dialects.ov.constant_value import Repeated
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.random_uniform import RandomUniform
from compiler_layer.dialects.ov.shape import (
    Broadcast,
    Reshape,
    ShapeOf,
    Squeeze,
    Transpose,
    Unsqueeze,
)
from compiler_layer.dialects.ov.slicing import Concat, Slice, Split, VariadicSplit
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.strided_slice import StridedSlice
from compiler_layer.dialects.ov.types import element_of, is_static, shape_of
from compiler_layer.elements import FOUR_BIT, NUMPY, RAW_FLOATS, Array, convert_values
from compiler_layer.errors import UnsupportedModel
from compiler_layer.files import FileView
from compiler_layer.reference.interpreter import evaluate

_WEIGHT_BYTES = 4096
"""Size above which a constant in a file is a weight, which is not copied into the IR."""

MAX_FOLDED_ELEMENTS = 1 << 22
"""Limit of folded results, in elements; a causal mask of 2048 is the largest that is folded."""

_NEVER_FOLDED = (
    Constant | ReadValue | Assign | Dequantize | ScaledDotProductAttention | RandomUniform
)

_MOVING = (
    *(Convert, Reshape, Transpose, Unsqueeze, Squeeze, Broadcast, Gather),
    *(Concat, Slice, StridedSlice, Split, VariadicSplit),
)
"""Ops that only move values, so they also fold raw bits of floats and 4-bit integers."""


def fold(op: Operation, most: int = MAX_FOLDED_ELEMENTS) -> int:
    """Replace an op by constants if its operands are constants.

    Args:
        op: erased if it is replaced.
        most: the maximum number of elements in its results.

    Returns:
        The number of elements of the constants; 0 if the op stays.

    Raises:
        UnsupportedModel: the value cannot be computed, e.g. of a gather out of range.
    """
    known = _known_operands(op, min(most, MAX_FOLDED_ELEMENTS))
    if known is None:
        return 0
    constants = _folded(op, known)
    Rewriter.replace_op(op, constants, [constant.output for constant in constants])
    return sum(math.prod(shape_of(constant.output)) for constant in constants)


def retyped(constant: Constant, element: str) -> Constant:
    """Return a constant of another element type; values in a file are converted when read."""

    def one(each: Constant) -> Constant:
        held, own = each.held, element_of(each.output)
        if isinstance(held, FileView):
            return Constant.of_file(held, element, shape_of(each.output))
        return Constant.inline(convert_values(each.load(), own, element), element)

    made = constant.each(one)
    made.attributes.update(constant.attributes)
    return made


def _known_operands(op: Operation, most: int) -> list[Constant] | None:
    """Return the constants that an op computes with, or None if it is not folded."""
    if isinstance(op, ShapeOf):
        return [] if is_static(shape_of(op.x)) else None
    if not isinstance(op, OvOp) or isinstance(op, _NEVER_FOLDED):
        return None
    constants = [constant_of(operand) for operand in op.operands]
    known = [constant for constant in constants if constant is not None]
    if len(known) != len(constants) or any(map(_is_weight, known)):
        return None
    shapes = [shape_of(value) for value in (*op.operands, *op.results)]
    # An empty tensor may have huge dimensions besides the empty one.
    if any(math.prod(max(d, 1) for d in shape) > most for shape in shapes):
        return None
    packed = any(element_of(operand) in RAW_FLOATS | FOUR_BIT for operand in op.operands)
    return None if packed and not isinstance(op, _MOVING) else known


def _folded(op: Operation, known: Sequence[Constant]) -> list[Constant]:
    """Return the results as constants; for repeated operands, with a value per repetition."""
    repeated = [constant.value.data for constant in known if constant.is_repeated]
    several = [data for data in repeated if isinstance(data, Repeated)]
    if not several:
        return _computed(op, known)
    every = [
        _computed(op, [constant.of_repetition(number) for constant in known])
        for number in range(len(several[0].values))
    ]
    return [Constant.repeated(several[0].own, each) for each in zip(*every, strict=True)]


def _computed(op: Operation, known: Sequence[Constant]) -> list[Constant]:
    if isinstance(op, ShapeOf):
        values: Sequence[Array] = [np.array(shape_of(op.x), NUMPY[op.output_type.data])]
    else:
        assert isinstance(op, OvOp)  # no other op has known operands
        values = _evaluated(op, known)
    return [
        Constant.inline(value, element_of(result))
        for value, result in zip(values, op.results, strict=True)
    ]


def _evaluated(op: OvOp, constants: Sequence[Constant]) -> Sequence[Array]:
    try:
        values = evaluate(op, [constant.load() for constant in constants])
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise UnsupportedModel(f"{op.described}: its value cannot be computed: {error}") from None
    for value, result in zip(values, op.results, strict=True):
        shape = shape_of(result)
        if is_static(shape) and value.shape != shape:
            raise UnsupportedModel(
                f"{op.described}: its value is {list(value.shape)}, not {list(shape)}"
            )
    return values


def _is_weight(constant: Constant) -> bool:
    return isinstance(constant.held, FileView) and constant.nbytes > _WEIGHT_BYTES
