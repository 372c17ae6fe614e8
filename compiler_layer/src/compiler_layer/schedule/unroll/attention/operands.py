"""Tensors of an attention, the unit of work of a tile, and loads that several tiles share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from compiler_layer.dialects import npu
from compiler_layer.schedule.layout import HardwareOp
from compiler_layer.schedule.tasks import NO_TABLES, Region, Step, Tables, Transfer
from compiler_layer.schedule.unroll.matmul import WeightTile
from compiler_layer.schedule.views import View

Range = tuple[int, int]
Parts = tuple[View, ...]
"""Keys, values or scales of one sequence, in one or several tensors."""

SHARED_BYTES = 64
"""Scales of all heads at a position are loaded together if they have fewer bytes: DMA moves words
of 32 or 64 bytes, so loading a few takes as long as loading all."""


@dataclass(frozen=True, slots=True)
class Operands:
    """Tensors of one attention; q and out [B, H, M, D].

    k and v have parts [1, Hkv, S_i, D] for each of B sequences; 8-bit parts have scales
    [1, Hkv, S_i, 1].
    """

    q: View
    k: tuple[Parts, ...]
    v: tuple[Parts, ...]
    k_scales: tuple[Parts, ...]
    v_scales: tuple[Parts, ...]
    mask: View | None
    out: View
    scale: float
    reach: tuple[int, ...]
    """Number of positions that each query row may attend to; empty for all positions."""

    @property
    def length(self) -> int:
        """Number of key positions."""
        return sum(part.shape[2] for part in self.k[0])

    @property
    def key_heads(self) -> int:
        """Number of heads of keys and values."""
        return self.k[0][0].shape[1]

    @property
    def group(self) -> int:
        """Number of query heads that share a key head."""
        return self.q.shape[1] // self.key_heads

    def reach_of(self, rows: Range) -> int:
        """Return the number of positions that a range of query rows may attend to."""
        return max(self.reach[slice(*rows)]) if self.reach else self.length

    def heads(self, view: View, unit: Unit) -> View:
        """Return a unit's query heads and rows of a tensor [B, H, M, D]."""
        sequence = slice(unit.sequence, unit.sequence + 1)
        heads = slice(unit.head * self.group, (unit.head + 1) * self.group)
        return view.sliced([sequence, heads, slice(*unit.rows), slice(None)])


def read_operands(op: HardwareOp, attention: npu.Attention) -> Operands:
    """Return an op's operands by name."""
    views = iter(op.operands)

    def views_of(values: Sequence[SSAValue]) -> tuple[Parts, ...]:
        taken = [next(views) for _ in values]
        count = len(taken) // attention.sequences
        return tuple(tuple(taken[i : i + count]) for i in range(0, len(taken), count or 1))

    q, k, v = next(views), views_of(attention.k), views_of(attention.v)
    mask = next(views) if attention.mask is not None else None
    if mask is not None:
        length = sum(part.shape[2] for part in k[0])
        mask = mask.broadcast((*mask.shape[:2], q.shape[2], length))
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

    Query rows of all these heads are stacked, so that one matmul computes them together.
    """

    sequence: int
    head: int
    rows: Range
    tile: int
    positions: int
    """Number of positions that the unit attends to, from the first one on."""

    @property
    def keys(self) -> tuple[int, int]:
        """The sequence and the head of the unit's keys and values."""
        return self.sequence, self.head

    @property
    def count(self) -> int:
        """Number of rows of each head."""
        return self.rows[1] - self.rows[0]

    def part_of(self, block: Range) -> Range:
        """Return the positions of a block that the unit attends to; an empty range if none."""
        return block[0], max(block[0], min(block[1], self.positions))

    def region(self, name: str, element: str, shape: tuple[int, ...]) -> Region:
        """Return a new tensor in the CMX of the unit's tile."""
        return Region.dense(f"attention.{name}", element, shape, (self.tile,))


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of keys or values in CMX [positions, D]; 8-bit rows have scales [positions, 1]."""

    region: Region
    scales: Region | None

    def as_keys(self) -> WeightTile:
        """Return the rows as a weight [n, k] of scores, with positions as outputs."""
        return WeightTile(self.region, NO_TABLES if self.scales is None else Tables(self.scales))

    def as_values(self) -> WeightTile:
        """Return the rows as a weight [n, k] of the context; each summed position is a group."""
        tables = NO_TABLES if self.scales is None else Tables(self.scales.swapped(), group=1)
        return WeightTile(self.region.swapped(), tables)


class Group:
    """Units that run in parallel; operands that several units read are broadcast to their tiles.

    Each method adds transfers to a step and returns a region for each unit. The region has the
    positions of a block that the unit attends to; it is None if the unit attends to none.
    """

    def __init__(self, operands: Operands, units: Sequence[Unit]) -> None:
        self.operands = operands
        self.units = units

    def load_queries(self, step: Step) -> list[Region]:
        """Load q [group, rows, D] of each unit."""
        queries: list[Region] = []
        for unit in self.units:
            source = self.operands.heads(self.operands.q, unit)
            region = unit.region("q", source.element, source.shape)
            step.loads.append(Transfer(source, region, (unit.tile,)))
            queries.append(region.reshaped(source.shape[1:]))
        return queries

    @property
    def positions(self) -> int:
        """Maximum number of positions that a unit attends to."""
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
        """Return the units that attend to any position of a block."""
        return [unit for unit in self.units if unit.positions > block[0]]

    def _join(
        self, step: Step, every: Sequence[Parts], block: Range, name: str
    ) -> list[Region | None]:
        """Load rows from all parts that contain them, once for each head of a sequence."""
        regions: dict[tuple[int, int], Region] = {}
        attending = self._attending(block)
        for sequence, head in dict.fromkeys(unit.keys for unit in attending):
            units = [unit for unit in attending if unit.keys == (sequence, head)]
            parts = every[sequence]
            tiles = tuple(unit.tile for unit in units)
            taken = max(unit.part_of(block) for unit in units)
            positions, channels = taken[1] - taken[0], parts[0].shape[3]
            transposed = _is_transposed(parts)
            dims = (1, 1, channels, positions) if transposed else (1, 1, positions, channels)
            whole = Region.dense(f"attention.{name}", parts[0].element, dims, tiles)
            for part, own, rows in _in_parts(parts, taken):
                source = part.sliced([slice(None), slice(head, head + 1), own, slice(None)])
                if transposed:
                    source, target = source.transposed((0, 1, 3, 2)), whole.rows(3, *rows)
                else:
                    target = whole.rows(2, *rows)
                step.loads.append(Transfer(source, target, tiles))
            matrix = whole.reshaped(dims[2:])
            regions[sequence, head] = matrix.swapped() if transposed else matrix
        found: list[Region | None] = []
        for unit in self.units:
            begin, end = unit.part_of(block)
            found.append(regions[unit.keys].rows(0, 0, end - begin) if end > begin else None)
        return found

    def _with_scales(
        self,
        step: Step,
        regions: Sequence[Region | None],
        every: Sequence[Parts],
        block: Range,
        name: str,
    ) -> list[Rows | None]:
        """Load the scales of 8-bit rows; in DDR, the scales of all heads are contiguous."""
        if not every:
            return [None if region is None else Rows(region, None) for region in regions]
        attending = self._attending(block)
        tables: dict[int, tuple[int, Region]] = {}
        for sequence in dict.fromkeys(unit.sequence for unit in attending):
            units = [unit for unit in attending if unit.sequence == sequence]
            parts = every[sequence]
            tiles = tuple(dict.fromkeys(unit.tile for unit in units))
            first, last = self._heads_of_scales(parts[0], units)
            taken = max(unit.part_of(block) for unit in units)
            shape = (1, 1, taken[1] - taken[0], last - first)
            whole = Region.dense(f"attention.{name}", parts[0].element, shape, tiles)
            for part, own, rows in _in_parts(parts, taken):
                by_row = part.transposed((0, 3, 2, 1))
                source = by_row.sliced([slice(None), slice(None), own, slice(first, last)])
                step.loads.append(Transfer(source, whole.rows(2, *rows), tiles))
            tables[sequence] = first, whole.reshaped(shape[2:])
        found: list[Rows | None] = []
        for unit, region in zip(self.units, regions, strict=True):
            if region is None:
                found.append(None)
                continue
            first, table = tables[unit.sequence]
            column = table.rows(1, unit.head - first, unit.head - first + 1)
            found.append(Rows(region, column.rows(0, 0, region.shape[0])))
        return found

    def _heads_of_scales(self, scales: View, units: Sequence[Unit]) -> Range:
        """Return the heads whose scales are loaded: all, or those that the units need."""
        heads = self.operands.key_heads
        if heads * scales.itemsize < SHARED_BYTES:
            return 0, heads
        needed = [unit.head for unit in units]
        return min(needed), max(needed) + 1

    def load_masks(self, step: Step, block: Range) -> list[Region | None]:
        """Load the mask [1 or group, rows, positions] of each unit, if the attention has one."""
        mask = self.operands.mask
        if mask is None:
            return [None] * len(self.units)
        attending = self._attending(block)
        regions: dict[tuple[int, int, Range], Region] = {}

        def which(unit: Unit) -> tuple[int, int, Range]:
            """Return the key of a unit's mask; a mask for all heads counts as the first head's."""
            sequences, heads, *_ = mask.shape
            sequence, head = unit.keys
            return sequence * (sequences > 1), head * (heads > 1), unit.rows

        for unit in attending:
            # A part that several tiles read is loaded to all of them together.
            sequence, head, rows = which(unit)
            if which(unit) in regions:
                continue
            heads = slice(head * self.operands.group, (head + 1) * self.operands.group)
            part = mask.sliced(
                [
                    slice(sequence, sequence + 1),
                    heads if mask.shape[1] > 1 else slice(None),
                    slice(*rows),
                    slice(*unit.part_of(block)),
                ]
            )
            tiles = tuple(other.tile for other in attending if which(other) == which(unit))
            region = Region.dense("attention.mask", mask.element, part.shape, tiles)
            step.loads.append(Transfer(part, region, tiles))
            regions[which(unit)] = region.reshaped(part.shape[1:])
        return [regions.get(which(unit)) for unit in self.units]


def _is_transposed(parts: Parts) -> bool:
    """Return whether most rows are stored channel by channel, as in a transposed cache.

    CMX then has the same layout: DMA moves complete words while neighbours stay neighbours, and the
    matmul reads both layouts at the same speed.
    """
    *_, position, channel = max(parts, key=lambda part: part.shape[2]).strides
    return position < channel


def _in_parts(parts: Sequence[View], block: Range) -> Iterator[tuple[View, slice, Range]]:
    """Yield the parts [1, H, S_i, …] that a block of positions overlaps.

    Each part comes with its slice of rows, and their range in the block.
    """
    begin = 0
    for part in parts:
        end = begin + part.shape[2]
        low, high = max(begin, block[0]), min(end, block[1])
        if low < high:
            yield part, slice(low - begin, high - begin), (low - block[0], high - block[0])
        begin = end
