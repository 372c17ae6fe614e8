"""Choice of parts of row-wise ops around given ops, as large as possible."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from xdsl.ir import Operation

from compiler_layer.model import Model
from compiler_layer.partition.parts import PartOps, fixed_ops
from compiler_layer.partition.row_wise import row_wise_ops
from compiler_layer.rewriting.dataflow import makers


def row_parts(
    model: Model, tag: str, seeds: Collection[Operation], others: Collection[Operation] = ()
) -> list[PartOps]:
    """Choose parts that join some ops with the row-wise ops around them.

    For example, the output matmul of a layer's attention, its norms and its MLP are one part, up to
    the operands of the next layer's attention. Ops that mix rows are between parts.

    Args:
        model: static and pure; not changed.
        tag: the tag of the parts.
        seeds: the ops; each one that mixes rows is a separate part.
        others: ops that belong to other parts.

    Returns:
        The parts; each is closed: no path leaves a part and returns to it.
    """
    rows = {op: count for op, count in row_wise_ops(model) if op not in others}
    part_of = _parts(model, rows)
    wanted = {part_of[op]: None for op in seeds if op in rows}
    members: dict[int, set[Operation]] = {number: set() for number in wanted}
    for op, number in part_of.items():
        if number in members:
            members[number].add(op)
    alone = [PartOps(tag, frozenset([op])) for op in seeds if op not in rows]
    return [*(PartOps(tag, frozenset(ops)) for ops in members.values()), *alone]


def _parts(model: Model, rows: Mapping[Operation, int]) -> dict[Operation, int]:
    """Return the number of each row-wise op's part.

    Ops of one part are connected, and the number of changes between rows and other values before
    them is equal. A path between two ops of a part therefore stays in the part.
    """
    fixed = fixed_ops(model)
    changes: dict[Operation, int] = {}
    first: dict[Operation, Operation] = {}
    for op in model.body.ops:
        if op in fixed or op is model.terminator:
            continue
        before = [maker for maker in makers(op) if maker in changes]
        changes[op] = max((changes[m] + (rows.get(m) != rows.get(op)) for m in before), default=0)
        if op in rows:
            first[op] = op
            for maker in before:
                if maker in rows and rows[maker] == rows[op] and changes[maker] == changes[op]:
                    first[_root(first, maker)] = _root(first, op)
    numbers: dict[Operation, int] = {}
    return {op: numbers.setdefault(_root(first, op), len(numbers)) for op in first}


def _root(first: dict[Operation, Operation], op: Operation) -> Operation:
    """Return the representative of the ops joined with an op."""
    while first[op] is not op:
        first[op] = first[first[op]]
        op = first[op]
    return op
