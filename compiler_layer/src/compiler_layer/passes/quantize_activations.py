"""Integer matmuls with 8-bit weights and dynamically quantised activations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import FLOATS
from compiler_layer.model import Model
from compiler_layer.quantize.rows import QuantizedRows, quantize_rows
from compiler_layer.rewriting.graph_pass import GraphPass
from compiler_layer.rewriting.replace import replace

_EIGHT_BITS = ("i8", "u8")


def can_be_integer(op: npu.MatMul) -> bool:
    """Return whether the DPU can run a matmul in integers: 8-bit weights, one scale per column."""
    return (
        op.scales is not None
        and element_of(op.b) in _EIGHT_BITS
        and op.group == op.channels
        and op.choices is None
        and element_of(op.a) in FLOATS
        and not int_value(op.transpose_a)
    )


def as_integers(
    op: npu.MatMul, a: SSAValue, row_scales: Sequence[SSAValue] = (), **properties: Attribute
) -> None:
    """Replace a matmul by one of integers.

    Args:
        op: the matmul (``can_be_integer``).
        a: its quantised left operand.
        row_scales: the scales of the operand's rows, if they differ.
        properties: further properties.
    """
    tables = [[one] if one is not None else [] for one in (op.scales, op.zeros)]
    flags = {"transpose_a": op.transpose_a, "transpose_b": op.transpose_b}
    integer = npu.MatMul(
        operands=[a, op.b, *tables, row_scales, []],
        properties={**flags, **properties},
        result_types=[op.output.type],
    )
    replace(op, integer)


def _quantized(model: Model, before: npu.MatMul) -> QuantizedRows:
    """Quantise the rows of a matmul's operand right before it, on SHAVE; scales are [rows, 1]."""
    g = GraphBuilder(model, before)
    rows = quantize_rows(g, before.a)
    count = math.prod(shape_of(rows.scales))
    return QuantizedRows(rows.values, g.reshape(rows.scales, count, 1))


class QuantizeActivations(GraphPass):
    """Compute matmuls with 8-bit weights in integers, with dynamically quantised activations.

    Before:  %y = npu.matmul(%x : f16, %w : i8) scales %s
    After:   %r = max |%x| / 127 per row ; %q = ov.Convert(ov.Round(%x / %r)) : …xi8
             %y = npu.matmul(%q, %w) scales %s rows %r

    Each token gets its own scale at run time (dynamic quantisation, W8A8). Matmuls that read the
    same tensor share its quantised rows. Weights with several groups of channels stay in floats:
    their sums cannot be one integer.

    Requires: ``lower-matmul``.
    Source: OpenVINO's DYNAMIC_QUANTIZATION_GROUP_SIZE, with a group as long as the row.
    """

    name = "quantize-activations"

    def _rewrite(self, model: Model) -> None:
        known: dict[SSAValue, QuantizedRows] = {}
        for each in model.ops:
            if not isinstance(each, npu.MatMul) or not can_be_integer(each):
                continue
            if each.a not in known:
                known[each.a] = _quantized(model, each)
            as_integers(each, known[each.a].values, [known[each.a].scales])
