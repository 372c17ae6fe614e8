"""Tasks of a program before placement, and their operands in CMX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from compiler_layer.dialects.ov.types import Shape
from compiler_layer.elements import NUMPY
from compiler_layer.schedule.views import Strided, View, dense_strides
from driver_layer.abi.shave import Access, Instruction


@dataclass(eq=False, slots=True)
class CmxBuffer:
    """A range of CMX, at the same offset on each of its tiles; ``order`` sets the offset."""

    name: str
    nbytes: int
    tiles: tuple[int, ...]
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Region(Strided[CmxBuffer]):
    """A tensor in CMX."""

    @staticmethod
    def dense(name: str, element: str, shape: Shape, tiles: tuple[int, ...]) -> Region:
        """Return a new buffer filled by one row-major tensor."""
        itemsize = NUMPY[element].itemsize
        buffer = CmxBuffer(name, math.prod(shape) * itemsize, tiles)
        return Region(buffer, element, 0, shape, dense_strides(shape, itemsize))

    def reshaped(self, shape: Shape) -> Region:
        """Return the elements of a dense tensor in another shape."""
        return replace(self, shape=shape, strides=dense_strides(shape, self.itemsize))

    def rows(self, axis: int, begin: int, end: int) -> Region:
        """Return the range between two indices of one dimension."""
        shape = (*self.shape[:axis], end - begin, *self.shape[axis + 1 :])
        return replace(self, offset=self.offset + begin * self.strides[axis], shape=shape)


Place = View | Region
"""One side of a transfer."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A DMA transfer from ``source`` to ``target``, element by element; with ``rows``, a gather.

    ``tiles`` are those whose CMX is written, or the one that is read; empty from DDR to DDR.
    """

    source: Place
    target: Place
    tiles: tuple[int, ...]
    rows: Region | None = None


@dataclass(frozen=True, slots=True)
class Tables:
    """Scales and zero points of quantised operands.

    ``scales`` and ``zeros`` [n, groups] belong to weights, ``row_scales`` [m, 1] to activations,
    from which ``zero`` is subtracted.
    """

    scales: Region | None = None
    zeros: Region | None = None
    row_scales: Region | None = None
    group: int = 0
    zero: int = 0

    def regions(self) -> list[Region]:
        """Return the tables that are present."""
        return [one for one in (self.scales, self.zeros, self.row_scales) if one is not None]


NO_TABLES = Tables()


@dataclass(frozen=True, slots=True)
class MatMulTask:
    """A DPU workload: out [b, m, n] = alpha · act [b, m, k] · weight [b, n, k]."""

    tile: int
    act: Region
    weight: Region
    out: Region
    alpha: float = 1.0
    accumulate: bool = False
    tables: Tables = NO_TABLES


@dataclass(frozen=True, slots=True)
class Window:
    """An operand of a SHAVE program over a grid of three dimensions and columns."""

    region: Region
    access: Access


@dataclass(frozen=True, slots=True)
class Invocation:
    """A SHAVE program over a grid."""

    tile: int
    program: tuple[Instruction, ...]
    grid: Shape
    windows: tuple[Window, ...]


Work = Transfer | MatMulTask | Invocation


@dataclass(eq=False, slots=True)
class Task:
    """One task: its work, and the op of the model that it belongs to."""

    work: Work
    op: int


@dataclass(slots=True)
class Step:
    """Tasks that form one step: loads, then work on the loaded operands, then stores."""

    op: int
    loads: list[Transfer] = field(default_factory=list[Transfer])
    work: list[Work] = field(default_factory=list[Work])
    stores: list[Transfer] = field(default_factory=list[Transfer])

    def all_work(self) -> list[Work]:
        """Return all tasks of the step, in order."""
        return [*self.loads, *self.work, *self.stores]


def regions_of(work: Work) -> list[tuple[Region, tuple[int, ...], bool]]:
    """Return the CMX operands of a task: region, tiles, and whether the task writes it."""
    match work:
        case Transfer():
            found: list[tuple[Region, tuple[int, ...], bool]] = []
            if isinstance(work.source, Region):
                found.append((work.source, work.tiles[:1], False))
            if work.rows is not None:
                found.append((work.rows, work.tiles[:1], False))
            if isinstance(work.target, Region):
                found.append((work.target, work.tiles, True))
            return found
        case MatMulTask():
            tile = (work.tile,)
            read = [work.act, work.weight, *work.tables.regions()]
            return [*((region, tile, False) for region in read), (work.out, tile, True)]
        case Invocation():
            return [(w.region, (work.tile,), bool(w.access & Access.WRITE)) for w in work.windows]


def cmx_buffers(work: Sequence[Work]) -> list[CmxBuffer]:
    """Return the CMX buffers that tasks use, in the order of their first use."""
    return list(dict.fromkeys(region.buffer for one in work for region, _, _ in regions_of(one)))
