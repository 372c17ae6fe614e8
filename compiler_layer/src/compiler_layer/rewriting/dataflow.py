"""Carrying ops, through which data flows, in an order that makes equal blocks look equal.

An exporter may put constants and shapes anywhere. Ops are therefore visited in the order in which
results need them, operand by operand. Ops that depend only on shapes, masks, positions and
constants are omitted: they are common to all blocks, or belong to the op that uses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from compiler_layer.dialects.ov.shape import ShapeOf
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.model import Model
from compiler_layer.rewriting.match import owner_of
from compiler_layer.rewriting.state import ASSIGN_PREFIX

_WHERE = ("attention_mask", "position_ids", "cache_position", "beam_idx")
"""Inputs with the positions of tokens, not their content."""


def makers(op: Operation) -> Iterator[Operation]:
    """Yield the ops that define an op's operands."""
    return (value.op for value in op.operands if isinstance(value, OpResult))


def users(op: Operation) -> Iterator[Operation]:
    """Yield the ops that use an op's results."""
    return (use.operation for result in op.results for use in result.uses)


def carrying_ops(model: Model) -> set[Operation]:
    """Return the ops whose value depends on tokens, or on the stored state of earlier tokens."""
    carrying: set[Operation] = set()
    tokens = {port.value for port in model.inputs if port.name not in _WHERE}
    for op in model.body.ops:
        if op is model.terminator:
            break
        reads = any(x in tokens or owner_of(x) in carrying for x in op.operands)
        if (reads and not isinstance(op, ShapeOf)) or isinstance(op, ReadValue | Assign):
            carrying.add(op)
    return carrying


def visiting_order(model: Model) -> list[Operation]:
    """Return the carrying ops: each after its operands, in the order in which results need them.

    Ops that only a variable needs follow right after their operands; unneeded ops are omitted.
    """
    carrying = carrying_ops(model)
    order: list[Operation] = []
    seen: set[Operation] = set()
    for port in model.outputs:
        if not port.name.startswith(ASSIGN_PREFIX):
            order += _visited(port.value, carrying, seen)
    aside: dict[Operation, list[Operation]] = {}
    at = {op: number for number, op in enumerate(order)}
    needed = _needed(model)
    for op in model.body.ops:
        if op not in carrying or op in seen or op not in needed:
            continue
        owners = [owner_of(x) for x in op.operands]
        places = [at[owner] for owner in owners if owner is not None and owner in at]
        place = max(places, default=len(order) - 1)
        at[op] = place
        if place >= 0:
            aside.setdefault(order[place], []).append(op)
    return [each for op in order for each in (op, *aside.get(op, ()))]


def _needed(model: Model) -> set[Operation]:
    """Return the ops that a result or a variable depends on."""
    needed: set[Operation] = {model.terminator}
    for op in reversed(model.ops):
        if isinstance(op, Assign) or any(user in needed for user in users(op)):
            needed.add(op)
    return needed


def _visited(root: SSAValue, carrying: set[Operation], seen: set[Operation]) -> Iterator[Operation]:
    """Yield unvisited carrying ops that a value depends on, operands first, without recursion."""
    stack: list[tuple[Operation, int]] = []
    _enter(root, carrying, seen, stack)
    while stack:
        op, number = stack.pop()
        if number == len(op.operands):
            yield op
            continue
        stack.append((op, number + 1))
        if not isinstance(op, ShapeOf):
            _enter(op.operands[number], carrying, seen, stack)


def _enter(
    value: SSAValue,
    carrying: set[Operation],
    seen: set[Operation],
    stack: list[tuple[Operation, int]],
) -> None:
    owner = owner_of(value)
    if owner is not None and owner in carrying and owner not in seen:
        seen.add(owner)
        stack.append((owner, 0))


def crossings(order: Sequence[Operation], length: int, cuts: Sequence[int]) -> list[int]:
    """Count, for each cut, the values of the ``length`` ops before it that are used after it."""
    at = {op: number for number, op in enumerate(order)}
    last_uses = [
        [max((at.get(use.operation, 0) for use in result.uses), default=0) for result in op.results]
        for op in order[: max(cuts)]
    ]
    return [
        sum(last >= cut for uses in last_uses[cut - length : cut] for last in uses) for cut in cuts
    ]
