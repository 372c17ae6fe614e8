"""The ops that data flows through, in an order in which equal blocks look equal.

An exporter's order says little: constants and shapes may stand anywhere. So ops are visited as the
result asks for them, operand by operand. What follows from shapes, masks, positions and constants
alone is left out: it is either the same for all blocks, or belongs to the op that uses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from compiler_layer.dialects.ov.shape import ShapeOf
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.model import Model
from compiler_layer.rewriting.state import ASSIGN_PREFIX

_WHERE = ("attention_mask", "position_ids", "cache_position", "beam_idx")
"""Inputs that say where tokens are, not what they are."""


def carrying_ops(model: Model) -> set[Operation]:
    """The ops whose value depends on tokens, or on what is stored of earlier ones."""
    carrying: set[Operation] = set()
    tokens = {port.value for port in model.inputs if port.name not in _WHERE}
    for op in model.body.ops:
        if op is model.terminator:
            break
        reads = any(x in tokens or _owner(x) in carrying for x in op.operands)
        if (reads and not isinstance(op, ShapeOf)) or isinstance(op, ReadValue | Assign):
            carrying.add(op)
    return carrying


def visiting_order(model: Model) -> list[Operation]:
    """The carrying ops: each after its operands, in the order in which the results need them.

    Those that no result needs, but a variable, follow right after what they are computed from;
    those that nobody needs are left out.
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
        owners = [_owner(x) for x in op.operands]
        places = [at[owner] for owner in owners if owner is not None and owner in at]
        place = max(places, default=len(order) - 1)
        at[op] = place
        if place >= 0:
            aside.setdefault(order[place], []).append(op)
    return [each for op in order for each in (op, *aside.get(op, ()))]


def _needed(model: Model) -> set[Operation]:
    """The ops that a result or a variable depends on."""
    needed: set[Operation] = {model.terminator}
    for op in reversed(model.ops):
        users = (use.operation for result in op.results for use in result.uses)
        if isinstance(op, Assign) or any(user in needed for user in users):
            needed.add(op)
    return needed


def _visited(root: SSAValue, carrying: set[Operation], seen: set[Operation]) -> Iterator[Operation]:
    """Give unseen carrying ops behind a value, operands first; no recursion: layers are many."""
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
    owner = _owner(value)
    if owner is not None and owner in carrying and owner not in seen:
        seen.add(owner)
        stack.append((owner, 0))


def _owner(value: SSAValue) -> Operation | None:
    return value.op if isinstance(value, OpResult) else None


def crossings(order: Sequence[Operation], length: int, cuts: Sequence[int]) -> list[int]:
    """For each cut, how many values made in the ``length`` ops before it are used behind it."""
    at = {op: number for number, op in enumerate(order)}
    last_uses = [
        [max((at.get(use.operation, 0) for use in result.uses), default=0) for result in op.results]
        for op in order[: max(cuts)]
    ]
    return [
        sum(last >= cut for uses in last_uses[cut - length : cut] for last in uses) for cut in cuts
    ]
