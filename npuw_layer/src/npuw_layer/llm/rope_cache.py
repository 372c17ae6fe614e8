"""Sines and cosines of rotary positions, looked up in tables instead of computed in each run.

A rotary embedding turns a key by an angle that depends on its position alone, so that for a cache
of so many rows there are only so many sines and cosines. They are computed once, here, in f32.

Source: CACHE_ROPE in NPUW (fact sheet npuw §a.3, step 17). Ours: what the angles depend on is found
by trying, not by patterns, so scaled embeddings are cached, too; those that change with the longest
position of a prompt (dynamic scaling) are left as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Cos, Sin
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model
from compiler_layer.passes.remove_dead_code import remove_dead_code
from npuw_layer.llm.computed import Computed, made_of
from npuw_layer.llm.names import POSITIONS
from npuw_layer.ports import Array

MAX_ROWS = 1 << 14
"""With more positions tables are larger than what they save is worth."""


def cache_rope(model: Model, rows: int) -> None:
    """Look sines and cosines up by position.

    Args:
        model: the stateful graph, changed in place.
        rows: positions from 0 on that will ever be asked for.
    """
    positions = next((port.value for port in model.inputs if port.name == POSITIONS), None)
    if positions is None or len(shape_of(positions)) != 2 or rows > MAX_ROWS:
        return  # of several axes (M-RoPE) no single one tells an angle
    found = [op for op in model.body.ops if isinstance(op, Sin | Cos) and _is_angle(op, positions)]
    if not found:
        return
    for op, table in zip(found, _tables(found, positions, rows), strict=True):
        if table is not None:
            g = GraphBuilder(model, op)
            Rewriter.replace_op(op, [], [g.gather(g.constant(table), positions, 0)])
    remove_dead_code(model)


def _is_angle(op: Sin | Cos, positions: SSAValue) -> bool:
    """Whether something f32 [batch, tokens, angles] is made of positions and constants alone."""
    angles = len(shape_of(op.x)) == 3 and element_of(op.x) == "f32"
    return angles and {*made_of(op.x)} == {positions}


def _tables(ops: Sequence[Sin | Cos], positions: SSAValue, rows: int) -> list[Array | None]:
    """The value of each op at each position, f32 [rows, angles]; None if that is not all."""
    whole = _values(ops, positions, range(rows))
    first, last = (_values(ops, positions, [row]) for row in (0, rows - 1))
    tables: list[Array | None] = []
    for number, values in enumerate(whole):
        alone = np.concatenate([first[number][0], last[number][0]])
        fits = values.shape[:2] == (1, rows) and np.array_equal(values[0][[0, -1]], alone)
        tables.append(np.ascontiguousarray(values[0]) if fits else None)
    return tables


def _values(ops: Sequence[Sin | Cos], positions: SSAValue, numbers: Sequence[int]) -> list[Array]:
    """Compute ops that are made of positions and constants, for some positions."""
    computed = Computed({positions: np.array([numbers], np.int64)})
    return [computed.of(op.results[0]) for op in ops]
