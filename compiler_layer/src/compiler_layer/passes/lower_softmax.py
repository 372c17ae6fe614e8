"""Lowering of softmax along dimensions other than the last."""

from __future__ import annotations

from compiler_layer.dialects.ov.op import int_attr, int_value
from compiler_layer.dialects.ov.reduce import LogSoftmax, Softmax
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.replace import insert_before, take_over, transpose_before


def _lower(op: Softmax | LogSoftmax) -> None:
    rank = len(shape_of(op.x))
    axis, order = int_value(op.axis) % rank, list(range(rank))
    if axis == rank - 1:
        return
    order[axis], order[-1] = rank - 1, axis
    rows = insert_before(
        op, type(op).make([transpose_before(op, op.x, order)], axis=int_attr(rank - 1))
    )
    take_over(op, transpose_before(op, rows, order))


class LowerSoftmax(OpPass):
    """Move the axis of a softmax, or of its logarithm, to the last dimension.

    Before:  %y = ov.Softmax(%x : [N, C, H, W]) {axis = 1}
    After:   %y = ov.Transpose(ov.Softmax(ov.Transpose(%x, [0, 3, 2, 1])) {axis = 3}, [0, 3, 2, 1])

    A transpose is a view.
    """

    name = "lower-softmax"
    rewrites = ((Softmax, _lower), (LogSoftmax, _lower))
