"""Byte storage of 4-bit values, which SHAVE and the DMA gather cannot address."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.constant import Constant, constant_of
from compiler_layer.dialects.ov.elementwise import Convert, Floor, Multiply, Select, Subtract
from compiler_layer.dialects.ov.logic import GreaterEqual
from compiler_layer.dialects.ov.op import int_attr
from compiler_layer.dialects.ov.shape import Reshape, Squeeze, Transpose, Unsqueeze
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.elements import NF4
from compiler_layer.rewriting.constants import retyped
from compiler_layer.rewriting.match import is_stored, owner_of
from compiler_layer.rewriting.replace import insert_before, reshape_before, slice_before

_MOVES = Reshape | Squeeze | Transpose | Unsqueeze
"""Ops that only move elements."""


def can_widen(value: SSAValue) -> bool:
    """Return whether ``widened`` supports a 4-bit value: a constant or input, perhaps moved."""
    owner = owner_of(value)
    return can_widen(owner.operands[0]) if isinstance(owner, _MOVES) else is_stored(value)


def widened(place: Operation, value: SSAValue) -> SSAValue:
    """Return a 4-bit value with one byte per element; new ops precede ``place``.

    A constant is widened by the compiler (if it is in a file, once for all programs of a model), an
    input by the device whenever the model runs.
    """
    owner = owner_of(value)
    if isinstance(owner, _MOVES):
        moved = owner.clone()
        moved.operands[0] = widened(place, owner.operands[0])
        moved.refresh_types()
        return insert_before(place, moved)
    constant = constant_of(value)
    if constant is not None:
        return insert_before(place, retyped(constant, _WIDE[element_of(value)]))
    assert isinstance(value, BlockArgument)  # the caller asked ``can_widen``
    return _input(place, value)


_WIDE = {"i4": "i8", "u4": "u8", "nf4": "f32"}
"""The element type that holds each 4-bit type."""


def _input(place: Operation, value: SSAValue) -> SSAValue:
    """Return an input's values, computed from its bytes."""
    codes = _codes(place, value)
    element = element_of(value)
    if element == "u4":
        return codes
    codes = _converted(place, codes, "f16")
    if element == "nf4":
        return _looked_up(place, codes)
    # Two's complement: 8 and above are negative.
    sixteens = _times(place, _floor_of(place, codes, 1 / 8), 16)
    return _converted(place, insert_before(place, Subtract.make([codes, sixteens])), "i8")


def _codes(place: Operation, value: SSAValue) -> SSAValue:
    """Return the bits of an input's elements as u8: lower and upper halves of its bytes in turn."""
    dims = shape_of(value)
    count = math.prod(dims)
    pairs = (*dims[:-1], dims[-1] // 2) if dims[-1] % 2 == 0 else ((count + 1) // 2,)
    read = npu.Bytes(operands=[value], result_types=[tensor("u8", pairs)])
    both = _converted(place, insert_before(place, read), "f16")
    upper = _floor_of(place, both, 1 / 16)
    lower = insert_before(place, Subtract.make([both, _times(place, upper, 16)]))
    halves = [
        reshape_before(place, _converted(place, half, "u8"), (*pairs, 1)) for half in (lower, upper)
    ]
    joined = insert_before(place, Concat.make([halves], axis=int_attr(len(pairs))))
    flat = reshape_before(place, joined, (2 * math.prod(pairs),))
    if count % 2:
        flat = slice_before(place, flat, 0, 0, count)
    return reshape_before(place, flat, dims)


def _converted(place: Operation, value: SSAValue, element: str) -> SSAValue:
    return insert_before(place, Convert.make([value], destination_type=StringAttr(element)))


def _looked_up(place: Operation, code: SSAValue) -> SSAValue:
    """Return the values of NF4 codes: SHAVE has no tables, but compares and selects."""
    value = _number(place, NF4[0])
    for number, greater in enumerate(NF4[1:], 1):
        reached = GreaterEqual.make([code, _number(place, np.float16(number))])
        chosen = Select.make([insert_before(place, reached), _number(place, greater), value])
        value = insert_before(place, chosen)
    return value


def _number(place: Operation, value: np.floating[Any]) -> SSAValue:
    return insert_before(place, Constant.inline(np.array(value)))


def _times(place: Operation, value: SSAValue, factor: float) -> SSAValue:
    return insert_before(place, Multiply.make([value, _number(place, np.float16(factor))]))


def _floor_of(place: Operation, value: SSAValue, factor: float) -> SSAValue:
    return insert_before(place, Floor.make([_times(place, value, factor)]))
