"""Attention windows stored as a table of booleans, on a static cache."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise, logic
from compiler_layer.dialects.ov.constant import ints_of, values_of
from compiler_layer.dialects.ov.slicing import Slice
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model
from npuw_layer.llm.graph.cache_positions import key_positions, replace_by_slot
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.llm.graph.symbolic_lengths import NONE, STORED, TOTAL, SymbolicLengths


def _window(op: Slice, lengths: SymbolicLengths) -> tuple[int, int] | None:
    """Return the nearest and farthest visible distances if an op slices such a table; else None."""
    table, rank = values_of(op.x), len(shape_of(op.x))
    axes = ints_of(op.axes) if op.axes is not None else None
    if table is None or element_of(op.x) != "boolean" or axes is None:
        return None
    if [axis % rank for axis in axes] != [rank - 2, rank - 1] or ints_of(op.step) != [1, 1]:
        return None
    new_rows = lengths.vector(op.start) == [STORED, NONE]
    if not new_rows or lengths.vector(op.stop) != [TOTAL, TOTAL]:
        return None
    square = shape_of(op.x)[-2:]
    return (
        _band(table.astype(np.bool_).reshape(square))
        if table.size == square[0] * square[1]
        else None
    )


def _band(table: npt.NDArray[np.bool_]) -> tuple[int, int] | None:
    """Return the least and the largest distance query − key at which a square table is true.

    None if the table is not true at all distances between them.
    """
    if table.shape[0] != table.shape[1]:
        return None
    numbers: npt.NDArray[np.int64] = np.arange(len(table), dtype=np.int64)
    distances: npt.NDArray[np.int64] = numbers[:, None] - numbers
    seen: npt.NDArray[np.int64] = distances[table]
    if not seen.size:
        return None
    nearest, farthest = int(seen.min()), int(seen.max())
    band: npt.NDArray[np.bool_] = (distances >= nearest) & (distances <= farthest)
    return (nearest, farthest) if np.array_equal(band, table) else None


def _compared(
    model: Model, op: Slice, past: int, span: tuple[int, int], positions: SSAValue
) -> SSAValue:
    """Return the comparison for one conversation: nearest <= query − key <= farthest."""
    g = GraphBuilder(model, op)
    new = g.reshape(positions, -1)
    keys = key_positions(g, new, past)
    rank = len(shape_of(op.x))
    queries = g.reshape(new, *(1,) * (rank - 2), -1, 1)
    distance = g.op(elementwise.Subtract, queries, g.reshape(keys, *(1,) * (rank - 1), -1))
    nearest, farthest = (g.constant(np.full((1,) * rank, d, np.int64)) for d in span)
    near = g.op(logic.LessEqual, nearest, distance)
    return g.op(logic.LogicalAnd, near, g.op(logic.LessEqual, distance, farthest))


@dataclass(frozen=True)
class CompareWindowTables(GraphPass):
    """Compare token indices in place of slicing a table of visible keys.

    Before:  %m = ov.Slice(%table, [past, 0], [total, total]) ; a constant boolean [1, 1, N, N]
    After:   %m = nearest <= %queries - %keys <= farthest, on token indices

    GPT-Neo stores the visible keys of each query, and slices the rows of the new tokens and the
    columns of all tokens. A static cache has as many rows as it has room for, so the slice would
    begin at the wrong token. Only a table whose entries depend on the distance of query and key is
    replaced. A replaced table adds the input ``cache_position``.

    Raises:
        ModelError: the mask has no dimension for several conversations.
    """

    name = "compare-window-tables"

    tokens: int
    past: int
    slots: int = 1

    def _rewrite(self, model: Model) -> None:
        lengths = SymbolicLengths(model)
        for each in model.ops:
            span = _window(each, lengths) if isinstance(each, Slice) else None
            if span is not None and isinstance(each, Slice):
                compared = partial(_compared, model, each, self.past, span)
                replace_by_slot(model, each, self.tokens, self.slots, compared)
