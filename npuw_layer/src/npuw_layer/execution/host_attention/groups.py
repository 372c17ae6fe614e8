"""The ops of each attention in a static model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.model import Model
from compiler_layer.partition.parts import PartOps
from npuw_layer.backends.protocols import READ_PREFIX


def attention_groups(model: Model, tag: str) -> list[PartOps]:
    """Find the ops of each attention over a cache.

    A group has the ScaledDotProductAttention and all ops that convert stored rows for it. So its
    inputs are q, K and V as stored in the cache, the new rows, and the mask; its output is the
    attention alone.

    Args:
        model: pure (its variables are inputs); it is not changed.
        tag: tag of the groups.

    Returns:
        A group for each attention over stored rows. An attention whose converted rows have other
        users has none, as it cannot run separately.
    """
    stored = _made_of_variables(model)
    groups = (_group(op, stored) for op in _attentions(model))
    return [PartOps(tag, group) for group in groups if len(group) > 1 and _stands_alone(group)]


def _attentions(model: Model) -> Iterator[ScaledDotProductAttention]:
    return (op for op in model.body.ops if isinstance(op, ScaledDotProductAttention))


def _made_of_variables(model: Model) -> set[Operation]:
    """Return the ops that depend on variables, except through an attention of an earlier layer."""
    variables = {port.value for port in model.inputs if port.name.startswith(READ_PREFIX)}
    found: set[Operation] = set()
    for op in model.body.ops:
        if not isinstance(op, ScaledDotProductAttention) and any(
            x in variables or (isinstance(x, OpResult) and x.op in found) for x in op.operands
        ):
            found.add(op)
    return found


def _group(attention: ScaledDotProductAttention, stored: set[Operation]) -> frozenset[Operation]:
    """Return an attention, and the ops that convert its stored rows."""
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
    """Return whether no op outside the group uses its intermediate values."""
    inside: Sequence[Operation] = [
        op for op in group if not isinstance(op, ScaledDotProductAttention)
    ]
    uses = (use for op in inside for result in op.results for use in result.uses)
    return all(use.operation in group for use in uses)
