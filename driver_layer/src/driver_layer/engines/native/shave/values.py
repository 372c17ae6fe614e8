"""A program as values: each is computed once, and only those that reach a store are left."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from driver_layer.abi.shave import REDUCTIONS, Form, Instruction, Op

ROW_OPS = REDUCTIONS | {Op.ROT, Op.IOTA}
"""Opcodes to which it matters which column a value stands in."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value: an opcode over values, by number; of LD, the window; of IMM and ROT, the number."""

    op: Op
    sources: tuple[int, ...] = ()
    window: int = 0
    imm: int = 0


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a program, each behind its sources, and what is stored: window and value."""

    nodes: tuple[Node, ...]
    stores: tuple[tuple[int, int], ...]
    windows: tuple[int, ...]
    """The windows that it uses, by their numbers in the argument block; here they are counted."""

    @property
    def loaded(self) -> frozenset[int]:
        """The windows that are read."""
        return frozenset(node.window for node in self.nodes if node.op is Op.LD)

    @property
    def stored(self) -> frozenset[int]:
        """The windows that are written."""
        return frozenset(window for window, _ in self.stores)

    @property
    def counts(self) -> bool:
        """Whether it numbers the columns."""
        return any(node.op is Op.IOTA for node in self.nodes)

    @property
    def needs_rows(self) -> bool:
        """Whether a column's value depends on more than that column."""
        return any(node.op in ROW_OPS for node in self.nodes)

    def without_rows(self, single: Sequence[bool]) -> Values:
        """The same without opcodes that look along a row, for values of one column.

        Args:
            single: for each value, whether it and its sources have one column.
        """
        return replace(
            self,
            nodes=tuple(
                _of_one_column(node) if one else node
                for node, one in zip(self.nodes, single, strict=True)
            ),
        )


def _of_one_column(node: Node) -> Node:
    if node.op is Op.IOTA:
        return Node(Op.IMM)
    return Node(Op.MOV, node.sources) if node.op in ROW_OPS else node


@functools.lru_cache(4096)
def values_of(program: tuple[Instruction, ...], same: tuple[int, ...]) -> Values | None:
    """Follow values through registers.

    Args:
        program: verified instructions.
        same: for each window, the first that is equal to it.

    Returns:
        None if a window is read after it was written, or is not there.
    """
    numbers: dict[Node, int] = {}
    registers: dict[int, int] = {}
    stores: dict[int, int] = {}
    for i in program:
        if i.op is Op.END:
            break
        if i.form in (Form.DST_WINDOW, Form.WINDOW_A) and i.window >= len(same):
            return None
        if i.form is Form.WINDOW_A:
            stores[same[i.window]] = registers[i.a]
            continue
        if i.op is Op.LD and same[i.window] in stores:
            return None
        node = Node(
            i.op,
            tuple(registers[source] for source in i.sources),
            same[i.window] if i.op is Op.LD else 0,
            i.imm,
        )
        registers[i.dst] = numbers.setdefault(node, len(numbers))
    return _without_dead(list(numbers), stores)


def _without_dead(nodes: Sequence[Node], stores: dict[int, int]) -> Values:
    live = set(stores.values())
    for number in reversed(range(len(nodes))):
        if number in live:
            live.update(nodes[number].sources)
    new = {old: number for number, old in enumerate(sorted(live))}
    used = sorted({*stores, *(nodes[old].window for old in live if nodes[old].op is Op.LD)})
    windows = {old: number for number, old in enumerate(used)}

    def renumbered(node: Node) -> Node:
        sources = tuple(new[source] for source in node.sources)
        return replace(
            node, sources=sources, window=windows[node.window] if node.op is Op.LD else 0
        )

    return Values(
        tuple(renumbered(nodes[old]) for old in new),
        tuple((windows[window], new[value]) for window, value in stores.items()),
        tuple(used),
    )
