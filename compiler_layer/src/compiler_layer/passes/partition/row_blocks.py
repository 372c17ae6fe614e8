"""Finds blocks of ops that compute each row by itself: as much around some ops as can be had."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from xdsl.ir import Operation, OpResult

from compiler_layer.model import Model
from compiler_layer.passes.partition.parts import Group, fixed_ops
from compiler_layer.passes.partition.row_wise import row_wise_ops


def row_blocks(
    model: Model, tag: str, seeds: Collection[Operation], others: Collection[Operation] = ()
) -> list[Group]:
    """Let ops stand alone together with what computes rows beside them.

    So a layer's product of attention, its norms and its MLP are one block, up to what the next
    layer's attention reads: between blocks is what mixes rows.

    Args:
        model: static and pure; it is not changed.
        tag: of the groups.
        seeds: the ops; those that mix rows stand alone.
        others: ops that are of no block: other groups have them.

    Returns:
        The groups, which can stand alone whatever lies between them: no way out of a block leads
        back into it.
    """
    rows = {op: count for op, count in row_wise_ops(model) if op not in others}
    block_of = _blocks(model, rows)
    wanted = {block_of[op]: None for op in seeds if op in rows}
    members: dict[int, set[Operation]] = {number: set() for number in wanted}
    for op, number in block_of.items():
        if number in members:
            members[number].add(op)
    alone = [Group(tag, frozenset([op])) for op in seeds if op not in rows]
    return [*(Group(tag, frozenset(ops)) for ops in members.values()), *alone]


def _blocks(model: Model, rows: Mapping[Operation, int]) -> dict[Operation, int]:
    """The number of each op's block.

    Ops are of one block that are joined, and behind as many changes between rows and all else: so a
    way from an op to another of its block leads through nothing else.
    """
    fixed = fixed_ops(model)
    changes: dict[Operation, int] = {}
    first: dict[Operation, Operation] = {}
    for op in model.body.ops:
        if op in fixed or op is model.terminator:
            continue
        makers = [maker for maker in _makers(op) if maker in changes]
        changes[op] = max((changes[m] + (rows.get(m) != rows.get(op)) for m in makers), default=0)
        if op in rows:
            first[op] = op
            for maker in makers:
                if maker in rows and rows[maker] == rows[op] and changes[maker] == changes[op]:
                    first[_root(first, maker)] = _root(first, op)
    numbers: dict[Operation, int] = {}
    return {op: numbers.setdefault(_root(first, op), len(numbers)) for op in first}


def _root(first: dict[Operation, Operation], op: Operation) -> Operation:
    """What stands for all ops that are joined with one."""
    while first[op] is not op:
        first[op] = first[first[op]]
        op = first[op]
    return op


def _makers(op: Operation) -> Iterator[Operation]:
    return (value.op for value in op.operands if isinstance(value, OpResult))
