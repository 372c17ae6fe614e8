"""Tables of sines and cosines for the rotary embedding.

Source: CACHE_ROPE in NPUW (docs/reference/npuw.md#rotary-tables). Difference: the inputs that
rotary factors depend on are found by evaluation, not by patterns, so scaled embeddings are cached
as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Add, Cos, Multiply, Sin
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.dequantize import fuse_dequantize
from npuw_layer.backends.protocols import Array
from npuw_layer.llm.graph.computed import Computed, behind, made_of
from npuw_layer.llm.graph.graph_pass import GraphPass
from npuw_layer.tensors.names import POSITIONS

MAX_ROWS = 1 << 14
"""Maximum rows of a table; longer ones cost more memory than their time is worth."""


def cache_rope(model: Model, rows: int, switch: SSAValue | None = None) -> None:
    """Replace sines and cosines by lookups by position.

    Args:
        model: the stateful graph, changed in place.
        rows: number of positions, from 0 on, in a table.
        switch: input i64 [sequences, 1] that chooses between two sets of factors, 0 or 1; each
            table then consists of two tables, one after the other. None for one set.
    """
    positions = model.find_input(POSITIONS)
    if positions is None or len(shape_of(positions)) != 2 or rows > MAX_ROWS:
        return  # with several axes (M-RoPE) a factor depends on several positions
    found = [op for op in model.body.ops if isinstance(op, Sin | Cos)]
    found = [op for op in found if _is_angle(op, positions, switch)]
    if not found:
        return
    computing = behind(operand for op in found for operand in op.operands)
    owners = (value.owner for value in computing)
    fuse_dequantize([*dict.fromkeys(op for op in owners if isinstance(op, Operation))])
    choices = range(1 if switch is None else 2)
    tables = [_tables(found, positions, rows, switch, choice) for choice in choices]
    for op, *of_op in zip(found, *tables, strict=True):
        whole = [table for table in of_op if table is not None]
        if len(whole) == len(of_op):
            g = GraphBuilder(model, op)
            at = positions if switch is None else _behind(g, positions, switch, rows)
            Rewriter.replace_op(op, [], [g.gather(g.constant(np.concatenate(whole)), at, 0)])
    remove_dead_code(model)


def _behind(g: GraphBuilder, positions: SSAValue, switch: SSAValue, rows: int) -> SSAValue:
    """Return the rows of positions in the chosen table."""
    begin = g.op(Multiply, switch, g.constant(np.full((1, 1), rows, np.int64)))
    return g.op(Add, positions, begin)


def _is_angle(op: Sin | Cos, positions: SSAValue, switch: SSAValue | None) -> bool:
    """Return whether an op reads f32 [batch, tokens, factors], computed from positions alone.

    Constants and the switch are allowed, too.
    """
    angles = len(shape_of(op.x)) == 3 and element_of(op.x) == "f32"
    return angles and {*made_of(op.x)} - {switch} == {positions}


def _tables(
    ops: Sequence[Sin | Cos],
    positions: SSAValue,
    rows: int,
    switch: SSAValue | None,
    choice: int,
) -> list[Array | None]:
    """Return the value of each op at each position, f32 [rows, factors].

    None for an op whose values depend on more than the position.

    Args:
        ops: ops computed from positions and the switch.
        positions: input of positions.
        rows: rows of a table.
        switch: input of the switch, or None.
        choice: value of the switch.
    """
    known = {} if switch is None else {switch: np.array([[choice]], np.int64)}
    whole = _values(ops, positions, range(rows), known)
    # Factors that also depend on other positions differ if a position stands alone.
    some = sorted({0, 1, rows // 2, rows - 1} & {*range(rows)})
    alone = [_values(ops, positions, [row], known) for row in some]
    tables: list[Array | None] = []
    for number, values in enumerate(whole):
        rest = np.concatenate([found[number][0] for found in alone])
        fits = values.shape[:2] == (1, rows) and np.array_equal(values[0][some], rest)
        tables.append(np.ascontiguousarray(values[0]) if fits else None)
    return tables


def _values(
    ops: Sequence[Sin | Cos],
    positions: SSAValue,
    numbers: Sequence[int],
    known: Mapping[SSAValue, Array],
) -> list[Array]:
    """Compute ops for some positions."""
    computed = Computed({**known, positions: np.array([numbers], np.int64)})
    return [computed.of(op.results[0]) for op in ops]


@dataclass(frozen=True)
class CacheRope(GraphPass):
    """Look up rotary sines and cosines by position.

    Before:  %a = ov.Multiply(%position_ids, %frequencies) ; %s = ov.Sin(%a)
    After:   %s = ov.Gather(%table, %position_ids)

    The sines and cosines of a rotary embedding depend only on the position, so a cache of ``rows``
    rows needs as many table rows. They are computed once, in f32 even for compressed frequencies,
    since the error of a frequency grows with the position. Sines and cosines that depend on
    anything else are not replaced, nor are those of a model of more than ``MAX_ROWS`` positions.
    """

    name = "cache-rope"

    rows: int

    def _rewrite(self, model: Model) -> None:
        cache_rope(model, self.rows)
