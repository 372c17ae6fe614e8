"""Biases by distance on a static cache: they are looked up by token, not by row.

MPT keeps a table of biases, the last one for the newest key, and takes as many of the last as there
are keys: ``table[..., size - (past + tokens):]``. In a static cache the new rows follow the whole
buffer, however little of it is filled, so that a stored key would be given the bias of another
distance. The table is therefore read at the token index of each row, counted back from the newest.
"""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.constant import ints_of
from compiler_layer.dialects.ov.slicing import Slice
from compiler_layer.dialects.ov.types import is_static, shape_of
from compiler_layer.model import Model
from npuw_layer.llm.graph.cache_positions import (
    cache_position,
    join_slots,
    positions_by_slot,
)
from npuw_layer.llm.graph.symbolic_lengths import Lengths, single


def look_up_biases(model: Model, tokens: int, past: int, slots: int = 1) -> None:
    """Read tables of biases by token index; add the input ``cache_position`` if there are any.

    Args:
        model: the stateful graph, changed in place.
        tokens: new tokens that it takes.
        past: rows of its caches.
        slots: conversations that it takes tokens of.

    Raises:
        ModelError: it is not known how biases belong to several conversations.
    """
    lengths = Lengths(model)
    for op in model.ops:
        axis = _bias_axis(op, lengths) if isinstance(op, Slice) else None
        if isinstance(op, Slice) and axis is not None:
            positions = cache_position(model, tokens, slots)
            found = [
                _looked_up(model, op, axis, own, past)
                for own in positions_by_slot(model, op, positions)
            ]
            Rewriter.replace_op(op, [], [join_slots(model, op, found)])


def _bias_axis(op: Slice, lengths: Lengths) -> int | None:
    """The dimension of which a slice takes the last, one for each stored and new token."""
    axes = ints_of(op.axes) if op.axes is not None else None
    end, dims = single(op.stop), shape_of(op.x)
    if axes is None or len(axes) != 1 or single(op.step) != 1 or not is_static(dims):
        return None
    axis = axes[0] % len(dims)
    if end is None or end < dims[axis] or not lengths.is_constant(op.x):
        return None
    return axis if lengths.of(op.start) == (dims[axis], -1, -1) else None


def _looked_up(model: Model, op: Slice, axis: int, positions: SSAValue, past: int) -> SSAValue:
    """The biases of all rows, stored ones first."""
    g = GraphBuilder(model, op)
    dims = shape_of(op.x)
    new = g.reshape(positions, -1)
    rows = g.concat([g.constant(np.arange(past, dtype=np.int64)), new], 0) if past else new
    # The newest token is the last one, and has the last bias. Rows that nobody filled are masked.
    behind = g.op(elementwise.Subtract, rows, g.slice(new, 0, -1))
    index = g.op(elementwise.Add, behind, g.ints(dims[axis] - 1))
    index = g.op(elementwise.Minimum, index, g.ints(dims[axis] - 1))
    # As rows of a table, which DMA looks up.
    others = [i for i in range(len(dims)) if i != axis]
    table = g.reshape(g.transpose(op.x, axis, *others), dims[axis], -1)
    order = [axis, *others]
    found = g.reshape(g.gather(table, index, 0), -1, *(dims[i] for i in others))
    return g.transpose(found, *(order.index(i) for i in range(len(dims))))
