"""Lowering of TopK to SHAVE."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.dialects.ov.constant import Constant, int_of
from compiler_layer.dialects.ov.elementwise import Convert, Select
from compiler_layer.dialects.ov.indexing import TopK
from compiler_layer.dialects.ov.logic import Equal
from compiler_layer.dialects.ov.op import bool_attr, int_attr, int_value
from compiler_layer.dialects.ov.reduce import ReduceMax, ReduceMin
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.dialects.ov.types import along_axes, element_of, shape_of
from compiler_layer.elements import FLOATS, convert_values
from compiler_layer.errors import UnsupportedModel
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.replace import insert_before

_MOST = 32
"""Maximum number of elements that are chosen, one per round."""


def topk_refusal(op: TopK) -> str | None:
    """Return why SHAVE cannot run a TopK, or None."""
    shape, count = shape_of(op.x), int_of(op.k)
    if int_value(op.axis) not in (-1, len(shape) - 1):
        return along_axes([int_value(op.axis)], len(shape))
    if count is None or not 0 < count <= _MOST:
        return f"of {count} elements"
    if element_of(op.x) not in FLOATS:
        return f"of {element_of(op.x)}"
    return "sorted by index" if op.sort.data == "index" and count > 1 else None


def _number(place: TopK, value: float, element: str) -> SSAValue:
    number = convert_values(np.array(value, np.float32), "f32", element)
    return insert_before(place, Constant.inline(number, element))


def _lower(op: TopK) -> None:
    refusal, count = topk_refusal(op), int_of(op.k)
    if refusal is not None or count is None:
        raise UnsupportedModel(f"TopK {op.friendly_name!r} {refusal}")
    largest = op.mode.data == "max"
    extreme = ReduceMax if largest else ReduceMin
    width = shape_of(op.x)[-1]
    columns = insert_before(op, Constant.inline(np.arange(width, dtype=np.float32)))
    beyond = _number(op, width, "f32")
    taken = _number(op, -np.inf if largest else np.inf, element_of(op.x))
    last = insert_before(op, Constant.inline(np.array([-1], np.int64)))
    left, values, places = op.x, list[SSAValue](), list[SSAValue]()
    for _ in range(count):
        best = insert_before(op, extreme.make([left, last], keep_dims=bool_attr(True)))
        found = insert_before(op, Select.make([_equal(op, left, best), columns, beyond]))
        first = insert_before(op, ReduceMin.make([found, last], keep_dims=bool_attr(True)))
        left = insert_before(op, Select.make([_equal(op, columns, first), taken, left]))
        values.append(best)
        places.append(first)
    # Converted together at the end: no op separates the rounds, so they fuse into one kernel.
    indices = Convert.make([_joined(op, places)], destination_type=op.index_element_type)
    Rewriter.replace_op(op, [], [_joined(op, values), insert_before(op, indices)])


def _equal(place: TopK, a: SSAValue, b: SSAValue) -> SSAValue:
    return insert_before(place, Equal.make([a, b]))


def _joined(place: TopK, parts: list[SSAValue]) -> SSAValue:
    return insert_before(place, Concat.make([parts], axis=int_attr(-1))) if parts[1:] else parts[0]


class LowerTopK(OpPass):
    """Lower TopK to SHAVE.

    Before:  %values, %indices = ov.TopK(%x, 2)
    After:   %v0 = ov.ReduceMax(%x) ; %i0 = ov.ReduceMin(ov.Select(ov.Equal(%x, %v0), [0, 1 …], W))
             %x1 = ov.Select(ov.Equal([0, 1 …], %i0), -inf, %x) ; … the same of %x1 …
             %values = ov.Concat(%v0, %v1) ; %indices = ov.Convert(ov.Concat(%i0, %i1))

    Each round finds one element, largest first. Among equal elements the first is chosen first,
    which OpenVINO guarantees for a stable TopK; otherwise it guarantees nothing. The elements must
    be finite, as probabilities are.

    Raises:
        UnsupportedModel: an axis other than the last, sorting by index, or too many elements.
    """

    name = "lower-topk"
    rewrites = ((TopK, _lower),)
