"""A program in SSA form: each value is computed once, and dead values are removed."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from driver_layer.abi.shave import REDUCTIONS, Form, Instruction, Op

ROW_OPS = REDUCTIONS | {Op.ROT, Op.IOTA}
"""Opcodes whose result depends on the column number or on other columns."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value: an opcode and its sources by number; the window of LD, the number of IMM and ROT."""

    op: Op
    sources: tuple[int, ...] = ()
    window: int = 0
    imm: int = 0


@dataclass(frozen=True, slots=True)
class Values:
    """Values of a program, each after its sources, and its stores as (window, value)."""

    nodes: tuple[Node, ...]
    stores: tuple[tuple[int, int], ...]
    windows: tuple[int, ...]
    """Numbers in the argument block of the windows in use; elsewhere, windows are renumbered."""

    @property
    def loaded(self) -> frozenset[int]:
        """Windows that are read."""
        return frozenset(node.window for node in self.nodes if node.op is Op.LD)

    @property
    def stored(self) -> frozenset[int]:
        """Windows that are written."""
        return frozenset(window for window, _ in self.stores)

    @property
    def counts(self) -> bool:
        """True if the program uses column numbers."""
        return any(node.op is Op.IOTA for node in self.nodes)

    @property
    def needs_rows(self) -> bool:
        """True if a column's value depends on other columns or on the column number."""
        return any(node.op in ROW_OPS for node in self.nodes)

    def without_rows(self, single: Sequence[bool]) -> Values:
        """Replace opcodes that depend on columns, for values of one column.

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
    """Return the values of a program, by tracking registers.

    Args:
        program: verified instructions.
        same: for each window, the first window equal to it.

    Returns:
        The values; None if a window is read after it was written, or does not exist.
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
