"""Token indices in place of row indices; the host supplies them as ``cache_position``.

In a static cache the new rows follow the whole buffer, which may be partly filled, so the distance
of two rows is not the distance of their tokens. Passes that replace row indices by token indices
share the input and the rewriting of index arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise, shape
from compiler_layer.dialects.ov.constant import constant_of
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model
from npuw_layer.errors import ModelError
from npuw_layer.tensors.names import CACHE_POSITION

_SCORES_RANK = 4
"""Scores are [batch, heads, tokens, rows]."""

_WITH_NUMBER = (elementwise.Add, elementwise.Subtract, elementwise.Divide)
ARITHMETIC = (*_WITH_NUMBER, elementwise.Floor)
"""Ops that ``index_chain`` follows and that change an index."""

_SHAPES = (shape.Unsqueeze, shape.Squeeze, shape.Reshape, shape.Transpose, elementwise.Convert)


def cache_position(model: Model, tokens: int, slots: int = 1) -> SSAValue:
    """Return the input of token indices, adding it if the model has none."""
    known = model.find_input(CACHE_POSITION)
    kind = tensor("i64", (slots, tokens))
    return model.add_input(CACHE_POSITION, kind) if known is None else known


def from_zero(rows: shape.Range) -> bool:
    """Return whether a range begins at row 0, i.e. numbers keys, not queries."""
    start = constant_of(rows.start)
    return start is not None and int(start.load().reshape(-1)[0]) == 0


def key_positions(g: GraphBuilder, positions: SSAValue, past: int) -> SSAValue:
    """Return the token indices of all rows; the index of a stored token is its row."""
    if not past:
        return positions
    return g.concat([g.constant(np.arange(past, dtype=np.int64)), positions], 0)


def replace_by_slot(
    model: Model, op: OvOp, tokens: int, slots: int, make: Callable[[SSAValue], SSAValue]
) -> None:
    """Replace an op by one value for each conversation, computed from its token indices.

    Args:
        model: changed in place.
        op: op whose result is the same for all conversations.
        tokens: new tokens of a conversation.
        slots: number of conversations; their values are joined to a batch.
        make: returns a conversation's value [1, heads, tokens, rows] from its token indices
            [1, tokens].

    Raises:
        ModelError: the values have no dimension for a batch.
    """
    argument, g = cache_position(model, tokens, slots), GraphBuilder(model, op)
    own = [g.slice(argument, 0, slot, slot + 1) for slot in range(slots)]
    values = [make(each) for each in own]
    dims = shape_of(values[0])
    if slots > 1 and (len(dims) != _SCORES_RANK or dims[0] != 1):
        raise ModelError(
            f"{op.described} computes {list(dims)} from token distances, without a dimension for "
            "several conversations"
        )
    Rewriter.replace_op(op, [], [g.concat(values, 0) if slots > 1 else values[0]])


def index_chain(value: SSAValue) -> list[OvOp]:
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


def on_tokens(
    model: Model, before: OvOp, value: SSAValue, positions: SSAValue, past: int
) -> SSAValue:
    """Copy the chain that computes a value, with token indices in place of its range of rows."""
    *chain, rows = index_chain(value)
    assert isinstance(rows, shape.Range)  # the caller has checked it
    g = GraphBuilder(model, before)
    new = g.reshape(positions, -1)
    if from_zero(rows):  # keys
        new = key_positions(g, new, past)
    if element_of(rows.output) != "i64":
        new = g.convert(new, element_of(rows.output))
    inside: dict[SSAValue, SSAValue] = {rows.output: new}
    for op in reversed(chain):
        copy = op.clone(inside)
        g.add(copy).refresh_types()
        inside[op.results[0]] = copy.results[0]
    return inside[value]
