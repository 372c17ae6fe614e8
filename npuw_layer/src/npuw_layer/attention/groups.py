"""Which ops of a static model belong to each of its attentions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.model import Model
from npuw_layer.ports import READ_PREFIX


def attention_groups(model: Model) -> list[list[Operation]]:
    """Find the ops of each attention over a cache, in the order of the graph.

    They are the ScaledDotProductAttention and all that is made of stored rows on their way to it.
    So such a group takes q, K and V as they lie in the cache, the new rows, and the mask; what it
    gives out is the attention alone.

    Args:
        model: pure (its variables are inputs); it is not changed.

    Returns:
        A group for each attention over stored rows. An op that several of them need, as where
        layers share a cache, is in each of their groups.
    """
    variables = {port.value for port in model.inputs if port.name.startswith(READ_PREFIX)}
    stored = _made_of(model, variables)
    place = {op: number for number, op in enumerate(model.body.ops)}
    groups: list[list[Operation]] = []
    for op in model.body.ops:
        if isinstance(op, ScaledDotProductAttention):
            rows = _behind((op.k, op.v), stored)
            if rows:
                groups.append(sorted((*rows, op), key=place.__getitem__))
    return groups


def _made_of(model: Model, variables: set[SSAValue]) -> set[Operation]:
    """The ops that depend on variables directly or through views, but not through an attention."""
    found: set[Operation] = set()
    for op in model.body.ops:
        if isinstance(op, ScaledDotProductAttention):
            continue  # what is behind it is of later layers
        if any(x in variables or (isinstance(x, OpResult) and x.op in found) for x in op.operands):
            found.add(op)
    return found


def _behind(values: Sequence[SSAValue], stored: set[Operation]) -> set[Operation]:
    """Of ops that stored rows go through, those that values are made by."""
    found: set[Operation] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, BlockArgument) or value.owner in found:
            continue
        if isinstance(value.owner, Operation) and value.owner in stored:
            found.add(value.owner)
            pending += value.owner.operands
    return found
