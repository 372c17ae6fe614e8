"""Token indices in the place of row indices, where a static cache makes them differ.

Exporters number rows: key j is in the window of query i if j > i - W (sliding), or if both have the
same j // W (Llama 4's chunks). In a static cache the new rows follow the whole buffer, however
little of it is filled, so that row numbers say nothing of how many tokens lie between. Comparisons
with arithmetic are therefore made on token indices, which the host supplies as ``cache_position``,
and so is what is computed of a query's own number. A comparison that merely orders rows (causality)
stays as it is.

Source: the same defect is mended in NPUW by patterns for single models (Phi-3's sliding mask).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise, logic, shape
from compiler_layer.dialects.ov.constant import constant_of
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.elements import FLOATS
from compiler_layer.model import Model
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.symbolic_lengths import STORED, Lengths
from npuw_layer.llm.names import CACHE_POSITION, POSITIONS

_SCORES_RANK = 4
"""Scores are [batch, heads, tokens, rows]."""

_WITH_NUMBER = (elementwise.Add, elementwise.Subtract, elementwise.Divide)
_ARITHMETIC = (*_WITH_NUMBER, elementwise.Floor)
_SHAPES = (shape.Unsqueeze, shape.Squeeze, shape.Reshape, shape.Transpose, elementwise.Convert)


def compare_tokens(model: Model, tokens: int, past: int, slots: int = 1) -> None:
    """Let comparisons with arithmetic compare token indices; add the input if there are any.

    Args:
        model: changed in place.
        tokens: new tokens that it takes.
        past: rows of its caches.
        slots: conversations that it takes tokens of.

    Raises:
        ModelError: it is not known how a comparison's result belongs to several conversations.
    """
    windows = [op for op in model.body.ops if isinstance(op, logic.Comparison) and _is_window(op)]
    if not windows:
        return
    argument = cache_position(model, tokens, slots)
    for op in windows:
        compared = [
            _compared(model, op, positions, past)
            for positions in positions_by_slot(model, op, argument)
        ]
        Rewriter.replace_op(op, [], [join_slots(model, op, compared)])


def count_positions(model: Model, tokens: int, slots: int = 1) -> None:
    """Let floats that are computed of a query's number be computed of its token index.

    Such are the rotary angles of a model that takes no positions (LFM-2), and the temperature by
    which Llama 4 scales distant queries. The exporter numbers queries from the rows of a cache, of
    which a static one always has all.

    Args:
        model: changed in place; it gets the input if there is such a number.
        tokens: new tokens that it takes.
        slots: conversations that it takes tokens of.

    Raises:
        ModelError: several conversations would have to share such a number.
    """
    takes_positions = any(port.name == POSITIONS for port in model.inputs)
    lengths = Lengths(model)
    for op in model.ops:
        if not isinstance(op, elementwise.Convert) or element_of(op.output) not in FLOATS:
            continue
        chain = _chain(op.x)
        rows = chain[-1] if chain else None
        if not isinstance(rows, shape.Range) or _from_0(rows):
            continue
        if not takes_positions or lengths.of(rows.start) == STORED:
            if slots > 1:
                raise ModelError(f"{op.described} is computed of a position, and each has its own")
            counted = cache_position(model, tokens)
            op.operands[0] = _rebuilt(model, op, op.x, counted, 0)


def _from_0(rows: shape.Range) -> bool:
    start = constant_of(rows.start)
    return start is not None and int(start.load().reshape(-1)[0]) == 0


def cache_position(model: Model, tokens: int, slots: int = 1) -> SSAValue:
    """Give the input of token indices; it is added if the model has none."""
    for port in model.inputs:
        if port.name == CACHE_POSITION:
            return port.value
    names = [port.name for port in model.inputs]
    argument = model.body.insert_arg(tensor("i64", (slots, tokens)), len(model.body.args))
    model.set_inputs([*names, CACHE_POSITION])
    return argument


def positions_by_slot(model: Model, before: OvOp, positions: SSAValue) -> list[SSAValue]:
    """Cut the token indices [slots, tokens] into those of each conversation."""
    slots, _ = shape_of(positions)
    g = GraphBuilder(model, before)
    return [g.slice(positions, 0, slot, slot + 1) for slot in range(slots)]


def join_slots(model: Model, before: OvOp, values: Sequence[SSAValue]) -> SSAValue:
    """Make a batch of what was computed for each conversation: [slots, heads, tokens, rows].

    Args:
        model: gets the op.
        before: what the values take the place of.
        values: of equal shapes.

    Raises:
        ModelError: it has no dimension for a batch.
    """
    if len(values) == 1:
        return values[0]
    dims = shape_of(values[0])
    if len(dims) != _SCORES_RANK or dims[0] != 1:
        raise ModelError(
            f"{before.described} gives {list(dims)} from the distance of tokens, with no dimension "
            "for several conversations"
        )
    return GraphBuilder(model, before).concat(values, 0)


def _compared(model: Model, op: logic.Comparison, positions: SSAValue, past: int) -> SSAValue:
    """Compare token indices of one conversation."""
    operands = [_rebuilt(model, op, operand, positions, past) for operand in op.operands]
    copy = GraphBuilder(model, op).add(op.clone(dict(zip(op.operands, operands, strict=True))))
    copy.refresh_types()
    return copy.results[0]


def _is_window(op: logic.Comparison) -> bool:
    chains = [_chain(operand) for operand in op.operands]
    from_rows = all(chain and isinstance(chain[-1], shape.Range) for chain in chains)
    if from_rows and chains[0][-1] is chains[1][-1]:
        return False  # new tokens among themselves: no rows of a cache lie between them
    return from_rows and any(isinstance(one, _ARITHMETIC) for chain in chains for one in chain)


def _chain(value: SSAValue) -> list[OvOp]:
    """List the ops from a value back to its origin, through views and arithmetic with constants."""
    found: list[OvOp] = []
    while isinstance(value.owner, OvOp):
        op = value.owner
        found.append(op)
        if isinstance(op, _WITH_NUMBER):
            known = [operand for operand in op.operands if constant_of(operand) is not None]
            if len(known) != 1:
                return found
            value = op.b if known[0] is op.a else op.a
        elif isinstance(op, (*_SHAPES, elementwise.Floor)):
            value = op.operands[0]
        else:
            return found
    return found


def _rebuilt(
    model: Model, before: OvOp, value: SSAValue, positions: SSAValue, past: int
) -> SSAValue:
    """Copy a chain, with token indices in the place of its range of rows."""
    *chain, rows = _chain(value)
    assert isinstance(rows, shape.Range)  # _is_window saw to it
    g = GraphBuilder(model, before)
    new = g.reshape(positions, -1)
    if _from_0(rows):
        # From row 0 on: keys. Stored ones lie where their index says.
        new = g.concat([g.constant(np.arange(past, dtype=np.int64)), new], 0) if past else new
    if element_of(rows.output) != "i64":
        new = g.convert(new, element_of(rows.output))
    inside: dict[SSAValue, SSAValue] = {rows.output: new}
    for op in reversed(chain):
        copy = op.clone(inside)
        g.add(copy).refresh_types()
        inside[op.results[0]] = copy.results[0]
    return inside[value]
