"""Integer matmuls with 8-bit weights and dynamically quantised activations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.shape import Reshape
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import FLOAT8, FLOATS
from compiler_layer.errors import UnsupportedModel
from compiler_layer.model import Model
from compiler_layer.quantize.rows import QuantizedRows, quantize_rows
from compiler_layer.rewriting.graph_pass import GraphPass
from compiler_layer.rewriting.match import producer, stored_constant
from compiler_layer.rewriting.replace import replace

_EIGHT_BITS = ("i8", "u8")


def can_be_integer(op: npu.MatMul) -> bool:
    """Return whether the DPU can run a matmul of floats in integers: it needs 8-bit weights."""
    return element_of(op.a) in FLOATS and not integer_refusal(op)


def integer_refusal(op: npu.MatMul) -> str:
    """Return why the DPU cannot run a matmul in integers; empty if it can."""
    if _is_dequantized(op.b):
        return "weights that are not stored as rows [N, K]"
    if op.scales is None or element_of(op.b) not in _EIGHT_BITS:
        return f"weights of type {element_of(op.b)}"
    if op.group != op.channels:
        return "several scales per column"
    if op.choices is not None:
        return "weights that are chosen at run time"
    return "a transposed left operand" if int_value(op.transpose_a) else ""


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


def _has_compressed_weights(op: npu.MatMul) -> bool:
    """Return whether a matmul's right operand is a compressed weight, and no compressed cache."""
    is_float8 = stored_constant(op.b) is not None and element_of(op.b) in FLOAT8
    return op.scales is not None or is_float8 or _is_dequantized(op.b)


def _is_dequantized(value: SSAValue) -> bool:
    """Return whether a value is a weight in a layout that the DPU does not read."""
    reshape = producer(value, Reshape)
    found = producer(value if reshape is None else reshape.x, Dequantize)
    return found is not None and stored_constant(found.stored) is not None


def _check(matmuls: Sequence[npu.MatMul]) -> None:
    """Check that all matmuls can be computed in integers.

    Raises:
        UnsupportedModel: one cannot.
    """
    refusals = dict.fromkeys(why for op in matmuls if (why := integer_refusal(op)))
    if refusals:
        raise UnsupportedModel(
            "DYNAMIC_QUANTIZATION_GROUP_SIZE: matmuls in integers need weights of 8 bits with one "
            f"scale per column; some have {', '.join(refusals)}; set 0 (npuc compile: omit "
            "--integer-activations), or export the model with --weight-format int8"
        )


class QuantizeActivations(GraphPass):
    """Compute matmuls with 8-bit weights in integers, with dynamically quantised activations.

    Before:  %y = npu.matmul(%x : f16, %w : i8) scales %s
    After:   %r = max |%x| / 127 per row ; %q = ov.Convert(ov.Round(%x / %r)) : …xi8
             %y = npu.matmul(%q, %w) scales %s rows %r

    Each token gets its own scale at run time (dynamic quantisation, W8A8). Matmuls that read the
    same tensor share its quantised rows. Matmuls with float weights stay in floats beside others.

    Requires: ``lower-matmul``.

    Raises:
        UnsupportedModel: a matmul with compressed weights cannot be computed in integers, e.g. as
            its weights have 4 bits; or all weights are floats.

    Source: OpenVINO's DYNAMIC_QUANTIZATION_GROUP_SIZE, with a group as long as the row: UINT64_MAX.
    """

    name = "quantize-activations"

    def _rewrite(self, model: Model) -> None:
        matmuls = [op for op in model.ops if isinstance(op, npu.MatMul)]
        compressed = [op for op in matmuls if _has_compressed_weights(op)]
        _check(compressed or [op for op in matmuls if stored_constant(op.b) is not None])
        known: dict[SSAValue, QuantizedRows] = {}
        for each in filter(can_be_integer, compressed):
            if each.a not in known:
                known[each.a] = _quantized(model, each)
            as_integers(each, known[each.a].values, [known[each.a].scales])
