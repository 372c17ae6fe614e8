"""The tensors of an attention, what a tile does of it, and loads that several tiles share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler_layer.dialects import npu
from compiler_layer.schedule.layout import HardwareOp
from compiler_layer.schedule.tasks import Region, Step, Transfer
from compiler_layer.schedule.views import View

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Operands:
    """The tensors of one attention; q and out [1, H, M, D], parts of k and v [1, Hkv, S_i, D]."""

    q: View
    k: tuple[View, ...]
    v: tuple[View, ...]
    mask: View | None
    out: View
    scale: float

    @property
    def length(self) -> int:
        """Key positions."""
        return sum(part.shape[2] for part in self.k)

    @property
    def key_heads(self) -> int:
        """Heads of keys and values."""
        return self.k[0].shape[1]

    @property
    def group(self) -> int:
        """Query heads that share a key head."""
        return self.q.shape[1] // self.key_heads

    def heads(self, view: View, unit: Unit) -> View:
        """The query heads and rows of a unit, of a tensor [1, H, M, D]."""
        heads = slice(unit.head * self.group, (unit.head + 1) * self.group)
        return view.sliced([slice(None), heads, slice(*unit.rows), slice(None)])


def read_operands(op: HardwareOp, attention: npu.Attention) -> Operands:
    """Name an op's operands."""
    parts = len(attention.k)
    q, *rest = op.operands
    mask = rest[2 * parts] if attention.mask is not None else None
    if mask is not None:
        length = sum(part.shape[2] for part in rest[:parts])
        mask = mask.broadcast((1, mask.shape[1], q.shape[2], length))
    return Operands(
        q=q,
        k=tuple(rest[:parts]),
        v=tuple(rest[parts : 2 * parts]),
        mask=mask,
        out=op.results[0],
        scale=attention.scale_value,
    )


@dataclass(frozen=True, slots=True)
class Unit:
    """The work of one tile: some query rows of the heads that share a key head.

    Query rows of all those heads are stacked, so that one product serves them all.
    """

    head: int
    rows: Range
    tile: int

    @property
    def count(self) -> int:
        """Rows of each head."""
        return self.rows[1] - self.rows[0]

    def region(self, name: str, element: str, shape: tuple[int, ...]) -> Region:
        """A new tensor in its tile's CMX."""
        return Region.dense(f"attention.{name}", element, shape, (self.tile,))


class Group:
    """Units that run side by side; what several of them read is loaded to all their tiles at once.

    Each method adds transfers to a step and gives a region for each unit.
    """

    def __init__(self, operands: Operands, units: Sequence[Unit]) -> None:
        self.operands = operands
        self.units = units

    def load_queries(self, step: Step) -> list[Region]:
        """Load q [group, rows, D] of each unit."""
        return [self._load(step, "q", self.operands.q, unit) for unit in self.units]

    def _load(self, step: Step, name: str, view: View, unit: Unit) -> Region:
        source = self.operands.heads(view, unit)
        region = unit.region(name, view.element, source.shape)
        step.loads.append(Transfer(source, region, (unit.tile,)))
        return region.reshaped(source.shape[1:])

    def load_keys(self, step: Step, block: Range) -> list[Region]:
        """Load rows of the keys, [positions, D]."""
        return self._join(step, self.operands.k, block, "keys")

    def load_values(self, step: Step, block: Range) -> list[Region]:
        """Load rows of the values, [positions, D]."""
        return self._join(step, self.operands.v, block, "values")

    def _join(self, step: Step, parts: Sequence[View], block: Range, name: str) -> list[Region]:
        """Load rows from however many parts they lie in, once for each head."""
        regions: dict[int, Region] = {}
        shape = (1, 1, block[1] - block[0], parts[0].shape[3])
        for head in dict.fromkeys(unit.head for unit in self.units):
            tiles = tuple(unit.tile for unit in self.units if unit.head == head)
            whole = Region.dense(f"attention.{name}", parts[0].element, shape, tiles)
            begin = 0
            for part in parts:
                end = begin + part.shape[2]
                low, high = max(begin, block[0]), min(end, block[1])
                if low < high:
                    taken = slice(low - begin, high - begin)
                    heads = slice(head, head + 1)
                    source = part.sliced([slice(None), heads, taken, slice(None)])
                    target = whole.rows(2, low - block[0], high - block[0])
                    step.loads.append(Transfer(source, target, tiles))
                begin = end
            regions[head] = whole.reshaped(shape[2:])
        return [regions[unit.head] for unit in self.units]

    def load_masks(self, step: Step, block: Range) -> list[Region | None]:
        """Load the mask [1 or group, rows, positions] of each unit, if there is one."""
        mask = self.operands.mask
        if mask is None:
            return [None] * len(self.units)
        mask = mask.sliced([slice(None), slice(None), slice(None), slice(*block)])
        if mask.shape[1] > 1:
            return [self._load(step, "mask", mask, unit) for unit in self.units]
        regions: dict[Range, Region] = {}
        for rows in dict.fromkeys(unit.rows for unit in self.units):
            tiles = tuple(unit.tile for unit in self.units if unit.rows == rows)
            part = mask.sliced([slice(None), slice(None), slice(*rows), slice(None)])
            region = Region.dense("attention.mask", mask.element, part.shape, tiles)
            step.loads.append(Transfer(part, region, tiles))
            regions[rows] = region.reshaped(part.shape[1:])
        return [regions[unit.rows] for unit in self.units]
