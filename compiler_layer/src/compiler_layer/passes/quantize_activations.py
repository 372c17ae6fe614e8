"""Lets products with 8-bit weights be computed in integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.elementwise import Abs, Convert, Divide, Maximum, Multiply, Round
from compiler_layer.dialects.ov.op import bool_attr, int_value
from compiler_layer.dialects.ov.reduce import ReduceMax
from compiler_layer.dialects.ov.types import FLOATS, element_of, shape_of
from compiler_layer.model import Model
from compiler_layer.passes.rewrite import insert_before, replace, reshape_before

_LEVELS = 127
"""The largest magnitude of a symmetric 8-bit number."""

_SMALLEST = 1e-12
"""Keeps the scale of a row of zeros from being zero."""

_EIGHT_BITS = ("i8", "u8")


def _can_be_integer(op: npu.MatMul) -> bool:
    """Whether the DPU has the product in integers: 8-bit weights with one scale per column."""
    return (
        op.scales is not None
        and element_of(op.b) in _EIGHT_BITS
        and op.group == op.channels
        and element_of(op.a) in FLOATS
        and not int_value(op.transpose_a)
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """Quantised rows i8 [..., K], and what each is worth, f32 [rows, 1]."""

    values: SSAValue
    scales: SSAValue


def _quantised(before: npu.MatMul, x: SSAValue) -> _Rows:
    """Divide each row by its largest magnitude: what SHAVE does right before the product."""

    def number(value: float) -> SSAValue:
        rank = len(shape_of(x))
        return insert_before(before, Constant.inline(np.full((1,) * rank, value, np.float32)))

    def converted(value: SSAValue, kind: str) -> SSAValue:
        if element_of(value) == kind:
            return value
        return insert_before(before, Convert.make([value], destination_type=StringAttr(kind)))

    wide = converted(x, "f32")
    last = insert_before(before, Constant.inline(np.array([-1], np.int64)))
    size = insert_before(before, Abs.make([wide]))
    peak = insert_before(before, ReduceMax.make([size, last], keep_dims=bool_attr(True)))
    above = insert_before(before, Maximum.make([peak, number(_SMALLEST)]))
    scale = insert_before(before, Multiply.make([above, number(1 / _LEVELS)]))
    ratio = insert_before(before, Divide.make([wide, scale]))
    whole = insert_before(before, Round.make([ratio], mode=StringAttr("half_to_even")))
    rows = int(np.prod(shape_of(scale)))
    return _Rows(converted(whole, "i8"), reshape_before(before, scale, (rows, 1)))


@dataclass(frozen=True)
class QuantizeActivations(ModulePass):
    """Lets products with 8-bit weights be computed in integers.

    Before:  %y = npu.matmul(%x : f16, %w : i8) scales %s
    After:   %r = max |%x| / 127 per row ; %q = ov.Convert(ov.Round(%x / %r)) : …xi8
             %y = npu.matmul(%q, %w) scales %s rows %r

    Each token has a scale of its own, found as it passes (dynamic quantisation, W8A8). Products
    that read the same tensor share its quantised rows. Weights with several groups of channels
    stay as they are: their sums cannot be one integer.

    Requires: ``lower-matmul``.
    Source: OpenVINO's DYNAMIC_QUANTIZATION_GROUP_SIZE, with a group as long as the row.
    """

    name = "quantize-activations"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        known: dict[SSAValue, _Rows] = {}
        for each in list(Model(op).body.ops):
            if not isinstance(each, npu.MatMul) or not _can_be_integer(each):
                continue
            if each.a not in known:
                known[each.a] = _quantised(each, each.a)
            rows = known[each.a]
            zeros = [] if each.zeros is None else [each.zeros]
            tables = ([each.scales] if each.scales is not None else [], zeros, [rows.scales])
            integer = npu.MatMul(
                operands=[rows.values, each.b, *tables],
                properties={"transpose_a": each.transpose_a, "transpose_b": each.transpose_b},
                result_types=[each.output.type],
            )
            replace(each, integer)
