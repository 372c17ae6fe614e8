"""Biases by distance on a static cache, looked up by token index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.constant import ints_of
from compiler_layer.dialects.ov.slicing import Slice
from compiler_layer.dialects.ov.types import is_static, shape_of
from compiler_layer.model import Model
from npuw_layer.llm.graph.cache_positions import cache_position, join_slots, positions_by_slot
from npuw_layer.llm.graph.pipeline import Placed
from npuw_layer.llm.graph.symbolic_lengths import Lengths, single
from npuw_layer.llm.graph.window_tables import CompareWindowTables
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.options import Options


def passes(model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
    """Return the pass for a model with tables of biases."""
    del options
    if not any(_last_of_table(op) is not None for op in model.body.ops):
        return ()
    look_up = LookUpBiases(stage.tokens, stage.past, stage.slots)
    return (Placed(CompareWindowTables.name, look_up),)


def _last_of_table(op: Operation) -> int | None:
    """Return the dimension of which a slice takes the last elements of a tensor of static shape."""
    if not isinstance(op, Slice):
        return None
    axes = ints_of(op.axes) if op.axes is not None else None
    end, dims = single(op.stop), shape_of(op.x)
    if axes is None or len(axes) != 1 or single(op.step) != 1 or not is_static(dims):
        return None
    axis = axes[0] % len(dims)
    return axis if end is not None and end >= dims[axis] else None


def _looked_up(model: Model, op: Slice, axis: int, positions: SSAValue, past: int) -> SSAValue:
    """Return the biases of all rows, stored ones first."""
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


@dataclass(frozen=True)
class LookUpBiases(ModulePass):
    """Read tables of biases by token index.

    Before:  %b = ov.Slice(%table, size - (past + tokens), size)
    After:   %b = ov.Gather(%table, size - 1 + %row - %newest) ; %row and %newest by token index

    MPT keeps a table of biases, the last one for the newest key, and takes one from the end for
    each key. In a static cache the new rows follow the whole buffer, however little of it is
    filled, so a stored key would have the bias of another distance. The input ``cache_position``
    is added if there is such a table.

    Raises:
        ModelError: the biases have no dimension for several conversations.
    """

    name = "look-up-biases"

    tokens: int
    past: int
    slots: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        lengths = Lengths(model)
        for each in model.ops:
            axis = _last_of_table(each)
            if axis is None or not isinstance(each, Slice) or not lengths.is_constant(each.x):
                continue
            if lengths.of(each.start) == (shape_of(each.x)[axis], -1, -1):
                positions = cache_position(model, self.tokens, self.slots)
                found = [
                    _looked_up(model, each, axis, own, self.past)
                    for own in positions_by_slot(model, each, positions)
                ]
                Rewriter.replace_op(each, [], [join_slots(model, each, found)])
