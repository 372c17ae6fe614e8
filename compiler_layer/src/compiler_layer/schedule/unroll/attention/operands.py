"""The tensors of an attention, what a tile does of it, and loads that several tiles share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from compiler_layer.dialects import npu
from compiler_layer.schedule.layout import HardwareOp
from compiler_layer.schedule.tasks import NO_TABLES, Region, Step, Tables, Transfer
from compiler_layer.schedule.unroll.matmul import Weight
from compiler_layer.schedule.views import View

Range = tuple[int, int]

SHARED_BYTES = 64
"""Scales of a position, of all heads, that are fewer bytes are loaded together: DMA moves words of
32 or 64 bytes, so that some of them take as long as all."""


@dataclass(frozen=True, slots=True)
class Operands:
    """The tensors of one attention; q and out [1, H, M, D], parts of k and v [1, Hkv, S_i, D].

    Parts in 8 bits have scales [1, Hkv, S_i, 1].
    """

    q: View
    k: tuple[View, ...]
    v: tuple[View, ...]
    k_scales: tuple[View, ...]
    v_scales: tuple[View, ...]
    mask: View | None
    out: View
    scale: float
    reach: tuple[int, ...]
    """For each query row, how many positions it may attend to; empty if that is all."""

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

    def reach_of(self, rows: Range) -> int:
        """How many positions some query rows may attend to."""
        return max(self.reach[slice(*rows)]) if self.reach else self.length

    def heads(self, view: View, unit: Unit) -> View:
        """The query heads and rows of a unit, of a tensor [1, H, M, D]."""
        heads = slice(unit.head * self.group, (unit.head + 1) * self.group)
        return view.sliced([slice(None), heads, slice(*unit.rows), slice(None)])


def read_operands(op: HardwareOp, attention: npu.Attention) -> Operands:
    """Name an op's operands."""
    views = iter(op.operands)

    def views_of(values: Sequence[SSAValue]) -> tuple[View, ...]:
        return tuple(next(views) for _ in values)

    q, k, v = next(views), views_of(attention.k), views_of(attention.v)
    mask = next(views) if attention.mask is not None else None
    if mask is not None:
        length = sum(part.shape[2] for part in k)
        mask = mask.broadcast((1, mask.shape[1], q.shape[2], length))
    return Operands(
        q=q,
        k=k,
        v=v,
        k_scales=views_of(attention.k_scales),
        v_scales=views_of(attention.v_scales),
        mask=mask,
        out=op.results[0],
        scale=attention.scale_value,
        reach=attention.reach_of_rows,
    )


@dataclass(frozen=True, slots=True)
class Unit:
    """The work of one tile: some query rows of the heads that share a key head.

    Query rows of all those heads are stacked, so that one product serves them all.
    """

    head: int
    rows: Range
    tile: int
    positions: int
    """How many of them it attends to, from the first on."""

    @property
    def count(self) -> int:
        """Rows of each head."""
        return self.rows[1] - self.rows[0]

    def part_of(self, block: Range) -> Range:
        """The positions of a block that it attends to; an empty range if there are none."""
        return block[0], max(block[0], min(block[1], self.positions))

    def region(self, name: str, element: str, shape: tuple[int, ...]) -> Region:
        """A new tensor in its tile's CMX."""
        return Region.dense(f"attention.{name}", element, shape, (self.tile,))


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of keys or values in CMX [positions, D]; of 8 bits with their scales [positions, 1]."""

    region: Region
    scales: Region | None

    def as_keys(self) -> Weight:
        """As a weight [n, k] of scores: its outputs are the positions."""
        return Weight(self.region, NO_TABLES if self.scales is None else Tables(self.scales))

    def as_values(self) -> Weight:
        """As a weight [n, k] of the context: each position, which is summed over, is a group."""
        tables = NO_TABLES if self.scales is None else Tables(self.scales.swapped(), group=1)
        return Weight(self.region.swapped(), tables)


class Group:
    """Units that run side by side; what several of them read is loaded to all their tiles at once.

    Each method adds transfers to a step and gives a region for each unit: of a block of positions,
    as many as the unit attends to, or None if these are none.
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

    @property
    def positions(self) -> int:
        """The most that a unit attends to."""
        return max(unit.positions for unit in self.units)

    def load_keys(self, step: Step, block: Range) -> list[Rows | None]:
        """Load rows of the keys."""
        regions = self._join(step, self.operands.k, block, "keys")
        return self._with_scales(step, regions, self.operands.k_scales, block, "key_scales")

    def load_values(self, step: Step, block: Range) -> list[Rows | None]:
        """Load rows of the values."""
        regions = self._join(step, self.operands.v, block, "values")
        return self._with_scales(step, regions, self.operands.v_scales, block, "value_scales")

    def _attending(self, block: Range) -> list[Unit]:
        """The units that attend to any of a block."""
        return [unit for unit in self.units if unit.positions > block[0]]

    def _join(
        self, step: Step, parts: Sequence[View], block: Range, name: str
    ) -> list[Region | None]:
        """Load rows from however many parts they lie in, once for each head."""
        regions: dict[int, Region] = {}
        attending = self._attending(block)
        for head in dict.fromkeys(unit.head for unit in attending):
            units = [unit for unit in attending if unit.head == head]
            tiles = tuple(unit.tile for unit in units)
            taken = max(unit.part_of(block) for unit in units)
            shape = (1, 1, taken[1] - taken[0], parts[0].shape[3])
            whole = Region.dense(f"attention.{name}", parts[0].element, shape, tiles)
            for part, own, rows in _in_parts(parts, taken):
                heads = slice(head, head + 1)
                source = part.sliced([slice(None), heads, own, slice(None)])
                step.loads.append(Transfer(source, whole.rows(2, *rows), tiles))
            regions[head] = whole.reshaped(shape[2:])
        found: list[Region | None] = []
        for unit in self.units:
            begin, end = unit.part_of(block)
            found.append(regions[unit.head].rows(0, 0, end - begin) if end > begin else None)
        return found

    def _with_scales(
        self,
        step: Step,
        regions: Sequence[Region | None],
        parts: Sequence[View],
        block: Range,
        name: str,
    ) -> list[Rows | None]:
        """Load what rows of 8 bits are worth: in memory, the scales of all heads lie together."""
        if not parts:
            return [None if region is None else Rows(region, None) for region in regions]
        attending = self._attending(block)
        tiles = tuple(dict.fromkeys(unit.tile for unit in attending))
        first, last = self._heads_of_scales(parts[0])
        taken = max(unit.part_of(block) for unit in attending)
        shape = (1, 1, taken[1] - taken[0], last - first)
        whole = Region.dense(f"attention.{name}", parts[0].element, shape, tiles)
        for part, own, rows in _in_parts(parts, taken):
            by_row = part.transposed((0, 3, 2, 1))
            source = by_row.sliced([slice(None), slice(None), own, slice(first, last)])
            step.loads.append(Transfer(source, whole.rows(2, *rows), tiles))
        table = whole.reshaped(shape[2:])
        found: list[Rows | None] = []
        for unit, region in zip(self.units, regions, strict=True):
            column = table.rows(1, unit.head - first, unit.head - first + 1)
            scaled = region and Rows(region, column.rows(0, 0, region.shape[0]))
            found.append(scaled)
        return found

    def _heads_of_scales(self, scales: View) -> Range:
        """The heads whose scales are loaded: all, or those that the units need."""
        heads = self.operands.key_heads
        if heads * scales.itemsize < SHARED_BYTES:
            return 0, heads
        needed = [unit.head for unit in self.units]
        return min(needed), max(needed) + 1

    def load_masks(self, step: Step, block: Range) -> list[Region | None]:
        """Load the mask [1 or group, rows, positions] of each unit, if there is one."""
        mask = self.operands.mask
        if mask is None:
            return [None] * len(self.units)
        attending = self._attending(block)
        regions: dict[tuple[int, Range], Region] = {}
        for unit in attending:
            # A mask for all heads is loaded once for the tiles that have the same rows.
            head = unit.head if mask.shape[1] > 1 else 0
            if (head, unit.rows) in regions:
                continue
            positions = slice(*unit.part_of(block))
            part = mask.sliced([slice(None), slice(None), slice(None), positions])
            if mask.shape[1] > 1:
                regions[head, unit.rows] = self._load(step, "mask", part, unit)
                continue
            tiles = tuple(other.tile for other in attending if other.rows == unit.rows)
            part = part.sliced([slice(None), slice(None), slice(*unit.rows), slice(None)])
            region = Region.dense("attention.mask", mask.element, part.shape, tiles)
            step.loads.append(Transfer(part, region, tiles))
            regions[head, unit.rows] = region.reshaped(part.shape[1:])
        shared = mask.shape[1] == 1
        return [regions.get((0 if shared else unit.head, unit.rows)) for unit in self.units]


def _in_parts(parts: Sequence[View], block: Range) -> Iterator[tuple[View, slice, Range]]:
    """Give the parts [1, H, S_i, …] that a block of positions lies in.

    With each the rows that are taken of it, and where they come to be in the block.
    """
    begin = 0
    for part in parts:
        end = begin + part.shape[2]
        low, high = max(begin, block[0]), min(end, block[1])
        if low < high:
            yield part, slice(low - begin, high - begin), (low - block[0], high - block[0])
        begin = end
