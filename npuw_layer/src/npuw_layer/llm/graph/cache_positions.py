"""Token indices, which the host supplies as ``cache_position``, in the place of row indices.

In a static cache the new rows follow the whole buffer, however little of it is filled, so the
distance of two rows is not the distance of their tokens. Passes that replace row indices by token
indices share the input and the rewriting of index arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise, shape
from compiler_layer.dialects.ov.constant import constant_of
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model
from npuw_layer.errors import ModelError
from npuw_layer.llm.names import CACHE_POSITION

_SCORES_RANK = 4
"""Scores are [batch, heads, tokens, rows]."""

_WITH_NUMBER = (elementwise.Add, elementwise.Subtract, elementwise.Divide)
ARITHMETIC = (*_WITH_NUMBER, elementwise.Floor)
"""Ops that ``index_chain`` follows and that compute something else of an index."""

_SHAPES = (shape.Unsqueeze, shape.Squeeze, shape.Reshape, shape.Transpose, elementwise.Convert)


def cache_position(model: Model, tokens: int, slots: int = 1) -> SSAValue:
    """Return the input of token indices; it is added if the model has none."""
    for port in model.inputs:
        if port.name == CACHE_POSITION:
            return port.value
    names = [port.name for port in model.inputs]
    argument = model.body.insert_arg(tensor("i64", (slots, tokens)), len(model.body.args))
    model.set_inputs([*names, CACHE_POSITION])
    return argument


def from_zero(rows: shape.Range) -> bool:
    """Return whether a range begins at row 0: it numbers keys, not queries."""
    start = constant_of(rows.start)
    return start is not None and int(start.load().reshape(-1)[0]) == 0


def positions_by_slot(model: Model, before: OvOp, positions: SSAValue) -> list[SSAValue]:
    """Split the token indices [slots, tokens] into those of each conversation."""
    slots, _ = shape_of(positions)
    g = GraphBuilder(model, before)
    return [g.slice(positions, 0, slot, slot + 1) for slot in range(slots)]


def join_slots(model: Model, before: OvOp, values: Sequence[SSAValue]) -> SSAValue:
    """Join the values of each conversation to a batch [slots, heads, tokens, rows].

    Args:
        model: changed in place.
        before: the op that the values replace.
        values: of equal shapes.

    Raises:
        ModelError: the values have no dimension for a batch.
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
    """Copy the chain behind a value, with token indices in the place of its range of rows."""
    *chain, rows = index_chain(value)
    assert isinstance(rows, shape.Range)  # the caller saw to it
    g = GraphBuilder(model, before)
    new = g.reshape(positions, -1)
    if from_zero(rows):
        # Keys: the row of a stored one is its index.
        new = g.concat([g.constant(np.arange(past, dtype=np.int64)), new], 0) if past else new
    if element_of(rows.output) != "i64":
        new = g.convert(new, element_of(rows.output))
    inside: dict[SSAValue, SSAValue] = {rows.output: new}
    for op in reversed(chain):
        copy = op.clone(inside)
        g.add(copy).refresh_types()
        inside[op.results[0]] = copy.results[0]
    return inside[value]
