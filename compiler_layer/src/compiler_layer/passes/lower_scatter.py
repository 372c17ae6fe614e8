"""Lowering of updates of single elements of rows to SHAVE."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.constant import Constant, int_of
from compiler_layer.dialects.ov.elementwise import Add, Select
from compiler_layer.dialects.ov.indexing import TopK
from compiler_layer.dialects.ov.logic import Equal, LogicalOr
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.scatter import ScatterElementsUpdate
from compiler_layer.dialects.ov.types import along_axes, element_of, shape_of
from compiler_layer.elements import NUMPY
from compiler_layer.errors import UnsupportedModel
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.match import producer, unconverted
from compiler_layer.rewriting.replace import insert_before, split_before, take_over

_MOST = 32
"""Maximum number of updates of a row."""


def scatter_refusal(op: ScatterElementsUpdate) -> str | None:
    """Return why SHAVE cannot run an update, or None."""
    shape, updates = shape_of(op.data), shape_of(op.updates)
    axis = int_of(op.axis)
    if axis not in (-1, len(shape) - 1):
        return along_axes([] if axis is None else [axis], len(shape))
    if updates[:-1] != shape[:-1]:
        return "of some rows alone"
    if updates[-1] > _MOST:
        return f"of {updates[-1]} elements of a row"
    if op.reduction.data not in ("none", "sum") or not int_value(op.use_init_val):
        return f"with reduction {op.reduction.data!r}"
    element = element_of(op.indices)
    return f"at indices of {element}" if shape[-1] > np.iinfo(NUMPY[element]).max + 1 else None


def _counts_from_start(indices: SSAValue) -> bool:
    """Return whether indices are provably not negative; a part of a model may lack the proof."""
    indices = unconverted(indices)
    return producer(indices, TopK) is not None or element_of(indices).startswith("u")


def _lower(op: ScatterElementsUpdate) -> None:
    refusal = scatter_refusal(op)
    if refusal is not None:
        raise UnsupportedModel(f"update {op.friendly_name!r} {refusal}")
    length = shape_of(op.data)[-1]
    starts = (0,) if _counts_from_start(op.indices) else (0, -length)
    counts = [np.arange(start, start + length) for start in starts]
    kind = NUMPY[element_of(op.indices)]
    first, *rest = (insert_before(op, Constant.inline(count.astype(kind))) for count in counts)
    value = op.data
    columns = [split_before(op, value, -1) for value in (op.indices, op.updates)]
    for index, update in zip(*columns, strict=True):
        here = insert_before(op, Equal.make([first, index]))
        for counted in rest:
            there = insert_before(op, Equal.make([counted, index]))
            here = insert_before(op, LogicalOr.make([here, there]))
        if op.reduction.data == "sum":
            update = insert_before(op, Add.make([value, update]))
        value = insert_before(op, Select.make([here, update, value]))
    take_over(op, value)


class LowerScatter(OpPass):
    """Lower updates of single elements of rows to SHAVE.

    Before:  %y = ov.ScatterElementsUpdate(%x, %ids, %w, -1)                %ids of ov.TopK, [T, 2]
    After:   %y0 = ov.Select(ov.Equal([0, 1 …], %ids[:, 0]), %w[:, 0], %x)
             %y = ov.Select(ov.Equal([0, 1 …], %ids[:, 1]), %w[:, 1], %y0)

    Graphs scatter the weights of chosen experts over all experts this way. Indices that are not
    from ov.TopK are also compared with [-n, 1 - n …], because they may count from the end.

    Requires: ``lower-topk`` has not run, because it decomposes the ov.TopK that is matched here.

    Raises:
        UnsupportedModel: an axis other than the last, or too many elements.
    """

    name = "lower-scatter"
    rewrites = ((ScatterElementsUpdate, _lower),)
