"""Adds to groups what lies between their own ops: else they could not run as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from xdsl.ir import Operation, OpResult

from compiler_layer.model import Model
from compiler_layer.passes.partition.parts import Group


def add_enclosed(model: Model, groups: Sequence[Group]) -> list[Group]:
    """Give each group the ops of no group that need it and that it needs.

    Args:
        model: static and pure; it is not changed.
        groups: disjoint.

    Returns:
        The groups, in their order. Where two enclose one another there is no way out: ``cut_parts``
        says so.
    """
    number_of = {op: number for number, group in enumerate(groups) for op in group.ops}
    ops = model.ops
    before = _reached(ops, number_of, _makers)
    after = _reached(reversed(ops), number_of, _users)
    members = [set(group.ops) for group in groups]
    for op in ops:
        around = before[op] & after[op]
        if around and op not in number_of:
            members[around.bit_length() - 1].add(op)
    pairs = zip(groups, members, strict=True)
    return [Group(group.tag, frozenset(every)) for group, every in pairs]


def _reached(
    ops: Iterable[Operation],
    number_of: dict[Operation, int],
    neighbours: Callable[[Operation], Iterator[Operation]],
) -> dict[Operation, int]:
    """For each op the groups on one side of it, a bit for each, however far away they are."""
    reached: dict[Operation, int] = {}
    for op in ops:
        found = 0
        for each in neighbours(op):
            found |= reached.get(each, 0)
            if each in number_of:
                found |= 1 << number_of[each]
        reached[op] = found
    return reached


def _makers(op: Operation) -> Iterator[Operation]:
    return (value.op for value in op.operands if isinstance(value, OpResult))


def _users(op: Operation) -> Iterator[Operation]:
    return (use.operation for result in op.results for use in result.uses)
