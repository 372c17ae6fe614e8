"""Which ops of a static model belong to each of its attentions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.model import Model
from compiler_layer.partition.parts import PartOps
from npuw_layer.backends.protocols import READ_PREFIX


def attention_groups(model: Model, tag: str) -> list[PartOps]:
    """Find the ops of each attention over a cache.

    They are the ScaledDotProductAttention and all that is made of stored rows on their way to it.
    So such a group takes q, K and V as they lie in the cache, the new rows, and the mask; what it
    gives out is the attention alone.

    Args:
        model: pure (its variables are inputs); it is not changed.
        tag: of the groups.

    Returns:
        A group for each attention over stored rows; none for one whose rows somebody else reads,
        too, as that could not stand alone.
    """
    stored = _made_of_variables(model)
    groups = (_group(op, stored) for op in _attentions(model))
    return [PartOps(tag, group) for group in groups if len(group) > 1 and _stands_alone(group)]


def _attentions(model: Model) -> Iterator[ScaledDotProductAttention]:
    return (op for op in model.body.ops if isinstance(op, ScaledDotProductAttention))


def _made_of_variables(model: Model) -> set[Operation]:
    """The ops that depend on variables, but not through an attention: that is of later layers."""
    variables = {port.value for port in model.inputs if port.name.startswith(READ_PREFIX)}
    found: set[Operation] = set()
    for op in model.body.ops:
        if not isinstance(op, ScaledDotProductAttention) and any(
            x in variables or (isinstance(x, OpResult) and x.op in found) for x in op.operands
        ):
            found.add(op)
    return found


def _group(attention: ScaledDotProductAttention, stored: set[Operation]) -> frozenset[Operation]:
    """An attention, and what its stored rows go through."""
    found: set[Operation] = {attention}
    pending: list[SSAValue] = [attention.k, attention.v]
    while pending:
        value = pending.pop()
        if isinstance(value, BlockArgument) or value.owner in found:
            continue
        if isinstance(value.owner, Operation) and value.owner in stored:
            found.add(value.owner)
            pending += value.owner.operands
    return frozenset(found)


def _stands_alone(group: frozenset[Operation]) -> bool:
    """Whether nobody else uses what is made on the way to an attention."""
    inside: Sequence[Operation] = [
        op for op in group if not isinstance(op, ScaledDotProductAttention)
    ]
    uses = (use for op in inside for result in op.results for use in result.uses)
    return all(use.operation in group for use in uses)
