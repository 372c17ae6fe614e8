"""Sines and cosines of rotary positions, looked up in tables instead of computed in each run.

A rotary embedding turns a key by an angle that depends on its position alone, so that for a cache
of so many rows there are only so many sines and cosines. They are computed once, here, in f32; from
compressed frequencies, too: an error of a frequency grows with the position.

Source: CACHE_ROPE in NPUW (fact sheet npuw §a.3, step 17). Ours: what the angles depend on is found
by trying, not by patterns, so scaled embeddings are cached, too. Of those with two sets of factors
(``long_rope``) there are two tables, one behind the other; those that change with the longest
position in another way are left as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from npuw_layer.llm.names import POSITIONS
from npuw_layer.traits.long_rope.names import long_from

MAX_ROWS = 1 << 14
"""With more positions tables are larger than what they save is worth."""


def cache_rope(model: Model, rows: int) -> None:
    """Look sines and cosines up by position.

    Args:
        model: the stateful graph, changed in place.
        rows: positions from 0 on that will ever be asked for.
    """
    inputs = {port.name: port.value for port in model.inputs}
    positions = inputs.get(POSITIONS)
    if positions is None or len(shape_of(positions)) != 2 or rows > MAX_ROWS:
        return  # of several axes (M-RoPE) no single one tells an angle
    long = long_from(inputs)
    told = None if long is None else inputs[long[0]]
    found = [op for op in model.body.ops if isinstance(op, Sin | Cos)]
    found = [op for op in found if _is_angle(op, positions, told)]
    if not found:
        return
    fuse_dequantize(_ops_behind(found))
    tables = [
        _tables(found, positions, rows, told, flag) for flag in range(1 if told is None else 2)
    ]
    for op, *of_op in zip(found, *tables, strict=True):
        whole = [table for table in of_op if table is not None]
        if len(whole) == len(of_op):
            g = GraphBuilder(model, op)
            at = positions if told is None else _behind(g, positions, told, rows)
            Rewriter.replace_op(op, [], [g.gather(g.constant(np.concatenate(whole)), at, 0)])
    remove_dead_code(model)


def _ops_behind(ops: Sequence[Operation]) -> list[Operation]:
    """The ops that compute the operands of some ops."""
    values = behind(operand for op in ops for operand in op.operands)
    return list(dict.fromkeys(v.owner for v in values if isinstance(v.owner, Operation)))


def _behind(g: GraphBuilder, positions: SSAValue, told: SSAValue, rows: int) -> SSAValue:
    """Where positions are in the table of short inferences, or in that of long ones behind it."""
    begin = g.op(Multiply, told, g.constant(np.full((1, 1), rows, np.int64)))
    return g.op(Add, positions, begin)


def _is_angle(op: Sin | Cos, positions: SSAValue, told: SSAValue | None) -> bool:
    """Whether something f32 [batch, tokens, angles] is made of positions and constants alone.

    What says that an inference is long may be among it.
    """
    angles = len(shape_of(op.x)) == 3 and element_of(op.x) == "f32"
    return angles and {*made_of(op.x)} - {told} == {positions}


def _tables(
    ops: Sequence[Sin | Cos], positions: SSAValue, rows: int, told: SSAValue | None, flag: int
) -> list[Array | None]:
    """The value of each op at each position, f32 [rows, angles]; None if that is not all.

    Args:
        ops: made of positions, and of what says that an inference is long.
        positions: the input.
        rows: of a table.
        told: the input that says it, if there is one.
        flag: what it says.
    """
    known = {} if told is None else {told: np.array([[flag]], np.int64)}
    whole = _values(ops, positions, range(rows), known)
    # What depends on other positions, too, shows where one stands alone.
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
    """Compute ops that are made of positions and constants, for some positions."""
    computed = Computed({**known, positions: np.array([numbers], np.int64)})
    return [computed.of(op.results[0]) for op in ops]
