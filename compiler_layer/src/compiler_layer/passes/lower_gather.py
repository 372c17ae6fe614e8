"""Lowering of embedding lookups to DMA."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.constant import Constant, constant_of
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.gather import Gather
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.shape import Reshape
from compiler_layer.dialects.ov.types import along_axes, element_of, shape_of, tensor
from compiler_layer.elements import FOUR_BIT
from compiler_layer.errors import UnsupportedModel
from compiler_layer.passes.route_experts import is_of_choices
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.match import producer, stored_value
from compiler_layer.rewriting.replace import insert_before, replace, reshape_before, take_over


def _as_i64(op: Gather) -> SSAValue:
    """Return row indices as i64, which DMA reads: from before conversions, or converted."""
    value = op.indices
    while element_of(value) != "i64":
        convert = producer(value, Convert)
        if convert is None:
            break
        value = convert.x
    if element_of(value) == "i64":
        return value
    constant = constant_of(op.indices)
    if constant is not None:
        return insert_before(op, Constant.inline(constant.load().astype(np.int64)))
    return insert_before(op, Convert.make([op.indices], destination_type=StringAttr("i64")))


def _rows(op: Gather, table: SSAValue, indices: SSAValue) -> SSAValue:
    """Gather rows of a table [R, ...] in its stored type."""
    shape = shape_of(table)
    if len(shape) != 2:
        table = reshape_before(op, table, (shape[0], math.prod(shape[1:])))
    width = shape_of(table)[1]
    kind = tensor(element_of(table), (*shape_of(op.indices), width))
    return insert_before(op, npu.Gather(operands=[table, indices], result_types=[kind]))


def _table(value: SSAValue) -> SSAValue:
    """Return a table before conversions, which the gathered rows need, too."""
    stored, convert = stored_value(value), producer(value, Convert)
    if stored is not None:
        return stored
    return value if convert is None else convert.x


def gather_refusal(op: Gather) -> str | None:
    """Return why DMA cannot run a gather, or None."""
    if is_of_choices(op):
        return None  # the matmul gathers these weights
    rank = len(shape_of(op.data))
    if int_value(op.batch_dims):
        return f"with batch_dims {int_value(op.batch_dims)}"
    if op.known_axis() != 0:
        return along_axes([op.known_axis()], rank)
    if rank < 2:  # rows have elements
        return "of single elements"
    # A row may end within a byte; rows of converted elements are gathered before the conversion.
    return f"of {element_of(op.data)}" if element_of(op.data) in FOUR_BIT else None


def _lower(op: Gather) -> None:
    refusal = gather_refusal(op)
    if refusal is not None:
        raise UnsupportedModel(f"gather {op.friendly_name!r} {refusal}")
    indices, compressed = _as_i64(op), _compressed(op.data)
    if compressed is not None:
        _lower_compressed(op, compressed, indices)
        return
    rows = _rows(op, _table(op.data), indices)
    if shape_of(rows) != shape_of(op.output):
        rows = reshape_before(op, rows, shape_of(op.output))
    if rows.type == op.output.type:
        take_over(op, rows)
    else:
        kind = StringAttr(element_of(op.output))
        replace(op, Convert.make([rows], destination_type=kind))


def _compressed(value: SSAValue) -> Dequantize | None:
    """Return the compressed weights of a table [R, W], possibly in groups."""
    reshape = producer(value, Reshape)
    weights = producer(value if reshape is None else reshape.x, Dequantize)
    keeps_rows = weights is not None and shape_of(weights.stored)[0] == shape_of(value)[0]
    return weights if keeps_rows and len(shape_of(value)) == 2 else None


def _lower_compressed(op: Gather, weights: Dequantize, indices: SSAValue) -> None:
    """Gather stored rows and their scales, then dequantise these rows only."""
    stored = shape_of(weights.stored)
    outer = shape_of(op.indices)
    parts: list[SSAValue] = []
    for part in weights.operands:
        dims = (1,) * (len(stored) - len(shape_of(part))) + shape_of(part)
        if dims[0] == stored[0]:
            part = reshape_before(op, _rows(op, part, indices), (*outer, *dims[1:]))
        parts.append(part)
    kind = StringAttr(element_of(op.output))
    wide = Dequantize.make([parts[0], parts[1], parts[2:]], destination_type=kind)
    if wide.output.type == op.output.type:
        replace(op, wide)
        return
    take_over(op, reshape_before(op, insert_before(op, wide), shape_of(op.output)))


class LowerGather(OpPass):
    """Lower embedding lookups to DMA.

    Before:  %t = ov.Convert(%table : tensor<8192x256xf16>) : …xf32 ; %y = ov.Gather(%t, %ids, 0)
    After:   %r = npu.gather(%table, %ids) : …xf16 ; %y = ov.Convert(%r) : …xf32

    Only the looked-up rows are converted (or scaled if compressed), not the table.

    Raises:
        UnsupportedModel: a gather along another axis than the first, of single elements, or of
            4-bit elements.
    """

    name = "lower-gather"
    rewrites = ((Gather, _lower),)
