"""Lookup of biases by token index, for a static cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.ir import Operation, SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.constant import ints_of
from compiler_layer.dialects.ov.slicing import Slice
from compiler_layer.dialects.ov.types import is_static, shape_of
from compiler_layer.model import Model
from npuw_layer.llm.graph.cache_positions import key_positions, replace_by_slot
from npuw_layer.llm.graph.graph_pass import GraphPass, Placed
from npuw_layer.llm.graph.symbolic_lengths import SymbolicLengths, single
from npuw_layer.llm.graph.window_tables import CompareWindowTables
from npuw_layer.llm.plan.stages import Stage
from npuw_layer.options import Options


def passes(model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
    """Return the pass for a model with tables of biases."""
    del options
    lengths = SymbolicLengths(model)
    if all(_last_of_table(op, lengths) is None for op in model.body.ops):
        return ()
    look_up = LookUpBiases(stage.tokens, stage.past, stage.slots)
    return (Placed(CompareWindowTables.name, look_up),)


def _last_of_table(op: Operation, lengths: SymbolicLengths) -> int | None:
    """Return the axis along which an op slices the last elements of a constant table, or None."""
    if not isinstance(op, Slice):
        return None
    axes = ints_of(op.axes) if op.axes is not None else None
    end, dims = single(op.stop), shape_of(op.x)
    if axes is None or len(axes) != 1 or single(op.step) != 1 or not is_static(dims):
        return None
    axis = axes[0] % len(dims)
    return axis if end is not None and end >= dims[axis] and lengths.is_constant(op.x) else None


def _looked_up(model: Model, op: Slice, axis: int, past: int, positions: SSAValue) -> SSAValue:
    """Return the biases of all rows, stored ones first."""
    g = GraphBuilder(model, op)
    dims = shape_of(op.x)
    new = g.reshape(positions, -1)
    rows = key_positions(g, new, past)
    # The last token is the newest, and has the last bias. Unfilled rows are masked.
    behind = g.op(elementwise.Subtract, rows, g.slice(new, 0, -1))
    index = g.op(elementwise.Add, behind, g.ints(dims[axis] - 1))
    index = g.op(elementwise.Minimum, index, g.ints(dims[axis] - 1))
    # DMA looks up rows of a table.
    others = [i for i in range(len(dims)) if i != axis]
    table = g.reshape(g.transpose(op.x, axis, *others), dims[axis], -1)
    order = [axis, *others]
    found = g.reshape(g.gather(table, index, 0), -1, *(dims[i] for i in others))
    return g.transpose(found, *(order.index(i) for i in range(len(dims))))


@dataclass(frozen=True)
class LookUpBiases(GraphPass):
    """Look up tables of biases by token index.

    Before:  %b = ov.Slice(%table, size - (past + tokens), size)
    After:   %b = ov.Gather(%table, size - 1 + %row - %newest) ; %row and %newest by token index

    MPT stores a table of biases, the last one for the newest key, and slices one for each key from
    its end. In a static cache the new rows follow the whole buffer, which may be partly filled, so
    a stored key would get the bias of another distance. A replaced slice adds the input
    ``cache_position``.

    Raises:
        ModelError: the biases have no dimension for several conversations.
    """

    name = "look-up-biases"

    tokens: int
    past: int
    slots: int = 1

    def _rewrite(self, model: Model) -> None:
        lengths = SymbolicLengths(model)
        for each in model.ops:
            axis = _last_of_table(each, lengths)
            if axis is None or not isinstance(each, Slice):
                continue
            if lengths.of(each.start) == (shape_of(each.x)[axis], -1, -1):
                looked_up = partial(_looked_up, model, each, axis, self.past)
                replace_by_slot(model, each, self.tokens, self.slots, looked_up)
