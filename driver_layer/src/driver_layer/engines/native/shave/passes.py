"""Division of a program into passes over a row's columns.

Reductions and rotations need all columns of their source, so values that depend on them belong to a
later pass. A pass recomputes cheap values of earlier passes; other values are kept in scratch
memory, each in a *slot*.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from driver_layer.abi.shave import REDUCTIONS, Op
from driver_layer.engines.native.shave.shapes import SINGLE
from driver_layer.engines.native.shave.values import Values

_COSTS: dict[Op, int] = {
    Op.MOV: 0,
    Op.IMM: 0,
    Op.SQRT: 4,
    Op.RSQRT: 8,
    Op.RCP: 4,
    Op.DIV: 4,
    Op.EXP: 16,
    Op.TANH: 30,
    Op.ERF: 40,
    Op.LOG: 60,
    Op.SIN: 60,
    Op.COS: 60,
    Op.POW: 120,
}
"""Approximate instructions per vector; 1 for other opcodes."""

_LOOPS = 40
"""Instructions of a pass in addition to its computation."""

_WORTH_KEEPING = 6
"""Cost in instructions up to which a value is recomputed, as a slot costs a store and loads."""


@dataclass(slots=True)
class Pass:
    """A pass over the columns of one width."""

    level: int
    width: int
    stores: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Pairs (window, value)."""
    reductions: list[int] = field(default_factory=list[int])
    kept: list[int] = field(default_factory=list[int])
    """Values that are stored to their slots."""
    needed: list[int] = field(default_factory=list[int])
    """Values with columns that the pass computes or loads, in order."""
    recalled: set[int] = field(default_factory=set[int])
    """Values among ``needed`` that are loaded from their slots."""
    cost: int = 0


@dataclass(slots=True)
class RowPlan:
    """Order of a row's computation."""

    levels: list[int]
    """First pass that can compute each value; a single value precedes that pass."""
    passes: list[Pass]
    slots: dict[int, int]
    """Slot of each kept value."""
    slot_widths: list[int]
    doubled: set[int]
    """Slots that store a row twice, contiguously, so that a rotation is a load."""
    single_cost: int
    """Instructions for the values of which a row has only one."""

    @property
    def size(self) -> int:
        """Approximate number of instructions of the code."""
        return self.single_cost + sum(_LOOPS + one.cost for one in self.passes)


class Planner:
    """Planner of the passes, and of the values that are kept.

    Args:
        values: the program.
        widths: width of each value.
        windows: width of each window.
    """

    def __init__(self, values: Values, widths: tuple[int, ...], windows: tuple[int, ...]) -> None:
        self._nodes, self._values = values.nodes, values
        self._widths, self._windows = widths, windows
        self._levels = self._find_levels()
        self._costs = self._find_costs()
        self._passes: dict[tuple[int, int], Pass] = {}
        self._last_use: dict[int, int] = {}
        self._turned: set[int] = set()

    def plan(self) -> RowPlan:
        """Return the order of a row's computation."""
        self._place_stores_and_reductions()
        # From the last pass to the first: a pass may require earlier ones to keep values.
        for level in range(max(self._levels, default=0), -1, -1):
            for key in [key for key in self._passes if key[0] == level]:
                self._find_needed(self._passes[key])
        slots, slot_widths = self._share_slots()
        passes = [self._passes[key] for key in sorted(self._passes)]
        doubled = {slots[value] for value in self._turned}
        single = sum(
            _COSTS.get(node.op, 1)
            for node, width in zip(self._nodes, self._widths, strict=True)
            if width == SINGLE
        )
        return RowPlan(self._levels, passes, slots, slot_widths, doubled, single)

    def _find_levels(self) -> list[int]:
        levels: list[int] = []
        for node in self._nodes:
            level = max((levels[source] for source in node.sources), default=0)
            levels.append(level + (node.op in REDUCTIONS or node.op is Op.ROT))
        return levels

    def _find_costs(self) -> list[int]:
        """Return the cost of computing each value from memory."""
        costs: list[int] = []
        for number, node in enumerate(self._nodes):
            if self._widths[number] == SINGLE:
                costs.append(0)
            elif node.op is Op.ROT:
                costs.append(1)
            else:
                below = sum(min(costs[source], _WORTH_KEEPING + 1) for source in node.sources)
                costs.append(_COSTS.get(node.op, 1) + below)
        return costs

    def _pass(self, level: int, width: int) -> Pass:
        return self._passes.setdefault((level, width), Pass(level, width))

    def _place_stores_and_reductions(self) -> None:
        last = max(self._levels, default=0)
        loaded = self._values.loaded
        for window, value in self._values.stores:
            width = self._windows[window]
            if width != SINGLE:
                # A window that is also read is stored last, after all reads.
                level = last if window in loaded else self._levels[value]
                self._pass(level, width).stores.append((window, value))
        for number, node in enumerate(self._nodes):
            if node.op in REDUCTIONS:
                source = node.sources[0]
                self._pass(self._levels[source], self._widths[source]).reductions.append(number)

    def _find_needed(self, one: Pass) -> None:
        """Find the values that a pass needs, down to memory, slots and single values."""
        roots = [value for _, value in one.stores] + one.kept
        roots += [self._nodes[number].sources[0] for number in one.reductions]
        pending, found = roots, set[int]()
        while pending:
            value = pending.pop()
            if value in found or self._widths[value] == SINGLE:
                continue
            found.add(value)
            node = self._nodes[value]
            if node.op is Op.ROT:
                self._keep(node.sources[0], one.level)
                self._turned.add(node.sources[0])
            elif self._levels[value] < one.level and self._costs[value] > _WORTH_KEEPING:
                self._keep(value, one.level)
                one.recalled.add(value)
            else:
                one.cost += _COSTS.get(node.op, 1)
                pending += node.sources
        one.needed = sorted(found)

    def _keep(self, value: int, level: int) -> None:
        if value not in self._last_use:
            self._last_use[value] = level
            self._pass(self._levels[value], self._widths[value]).kept.append(value)
        self._last_use[value] = max(self._last_use[value], level)

    def _share_slots(self) -> tuple[dict[int, int], list[int]]:
        """Assign each kept value a slot that is free from its first to its last use."""
        slots: dict[int, int] = {}
        widths: list[int] = []
        free_from: list[int] = []
        for value in sorted(self._last_use, key=lambda v: (self._levels[v], v)):
            width, level = self._widths[value], self._levels[value]
            fitting = [
                slot
                for slot, free in enumerate(free_from)
                if free <= level and widths[slot] == width
            ]
            if not fitting:
                fitting = [len(widths)]
                widths.append(width)
                free_from.append(0)
            slots[value] = fitting[0]
            free_from[fitting[0]] = self._last_use[value] + 1
        return slots, widths
