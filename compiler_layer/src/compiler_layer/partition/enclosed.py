"""Completion of chosen parts by the ops between their ops, so that each can run as one part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from xdsl.ir import Operation

from compiler_layer.model import Model
from compiler_layer.partition.parts import PartOps
from compiler_layer.rewriting.dataflow import makers, users


def add_enclosed(model: Model, chosen: Sequence[PartOps]) -> list[PartOps]:
    """Add to each part the unchosen ops on a path between two of its ops.

    Args:
        model: static and pure; not changed.
        chosen: disjoint parts.

    Returns:
        The parts in their order. ``cut_parts`` rejects two parts that enclose each other.
    """
    number_of = {op: number for number, part in enumerate(chosen) for op in part.ops}
    ops = model.ops
    before = _reached(ops, number_of, makers)
    after = _reached(reversed(ops), number_of, users)
    members = [set(part.ops) for part in chosen]
    for op in ops:
        around = before[op] & after[op]
        if around and op not in number_of:
            members[around.bit_length() - 1].add(op)
    pairs = zip(chosen, members, strict=True)
    return [PartOps(part.tag, frozenset(ops)) for part, ops in pairs]


def _reached(
    ops: Iterable[Operation],
    number_of: dict[Operation, int],
    neighbours: Callable[[Operation], Iterator[Operation]],
) -> dict[Operation, int]:
    """Return, for each op, a bit mask of the parts reachable in one direction."""
    reached: dict[Operation, int] = {}
    for op in ops:
        found = 0
        for each in neighbours(op):
            found |= reached.get(each, 0)
            if each in number_of:
                found |= 1 << number_of[each]
        reached[op] = found
    return reached
