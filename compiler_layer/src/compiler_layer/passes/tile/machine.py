"""The machine that choices of blocks are priced for: a platform's engines, and their overlap.

An op runs as steps; while one computes, DMA loads the operands of the next and stores the results
of the last. A step therefore takes as long as the slowest of the three if CMX has room for it;
otherwise they alternate. ``driver_layer.abi.cost`` has the times of single tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from compiler_layer.elements import FOUR_BIT, NUMPY
from driver_layer.abi.cost import Space, dma_ns
from driver_layer.abi.cost.dma import ddr_bytes_per_ns, padded_bytes
from driver_layer.abi.platforms import Platform

TASK_NS = 250.0
"""Overhead of a task beyond its work: issue and barriers (A: no public source)."""

_USABLE = 0.97
"""Share of CMX that is planned with; alignment and gaps between buffers take the rest."""


def round_up(value: int, grain: int) -> int:
    """Round up to a multiple of ``grain``."""
    return -(-value // grain) * grain


@cache
def width(element: str) -> float:
    """Return the bytes of an element; 0.5 for 4-bit elements."""
    return 0.5 if element in FOUR_BIT else NUMPY[element].itemsize


def cuts(length: int, grain: int = 1, most: int | None = None) -> Iterator[int]:
    """Yield block sizes of a dimension, largest first: 1, 2, 3, 4, 6, 8, 12, 16 … equal parts.

    Args:
        length: size of the dimension.
        grain: granularity of sizes below the full length.
        most: maximum size.
    """
    last, parts, three = 0, 1, False
    while True:
        size = min(length, round_up(-(-length // parts), grain))
        if size != last and (most is None or size <= most):
            yield size
        if size <= grain:
            return
        last = size
        parts, three = (parts * 4 // 3, False) if three else (max(2, parts * 3 // 2), parts > 1)


@dataclass(frozen=True, slots=True)
class Moved:
    """Transfers of one size between DDR and CMX; ``run`` bytes of each are contiguous in DDR."""

    count: int
    nbytes: int
    run: int


class Pipeline(NamedTuple):
    """Equal steps that overlap with their loads and stores.

    ``first_ns`` is the load that nothing hides; ``steps`` may be fractional, where the last is
    smaller. ``overlaps`` is True if CMX has room for the loads of the next step.
    """

    first_ns: float
    steps: float
    load_ns: float
    work_ns: float
    store_ns: float
    overlaps: bool

    @property
    def dma_ns(self) -> float:
        """Time of all transfers, one after the other."""
        later = max(0.0, self.steps - 1) * self.load_ns
        return self.first_ns + later + self.steps * self.store_ns

    @property
    def ns(self) -> float:
        """Time from begin to end."""
        if self.overlaps:
            between = max(self.load_ns, self.work_ns, self.store_ns)
            return self.first_ns + max(0.0, self.steps - 1) * between + self.work_ns + self.store_ns
        turn = self.load_ns + self.work_ns
        return self.first_ns - self.load_ns + self.steps * turn + self.store_ns


class Price(NamedTuple):
    """Time and tasks of an op with given blocks; numbers of tasks are averages, not integers."""

    work_ns: float
    """Time from begin to end if the op has the device alone and tasks start immediately."""
    dma_ns: float
    """Time of all transfers."""
    dpu_ns: float
    """Time of the DPU of one tile."""
    shave_ns: float
    transfers: float
    products: float
    invocations: float
    ahead_ns: float = 0.0
    """Share of the begin that loads weights, which may be loaded ahead."""
    tail_ns: float = 0.0
    """Share of the end after the last load; the next op's loads may begin there."""

    @property
    def tasks(self) -> float:
        """Number of tasks of all engines."""
        return self.transfers + self.products + self.invocations

    @property
    def ns(self) -> float:
        """Time by which choices are compared: the work, and the overhead of its tasks."""
        return self.work_ns + self.tasks * TASK_NS

    def times(self, factor: float) -> Price:
        """Return the price of ``factor`` equal ops, one after the other."""
        scaled = Price(*(factor * each for each in self))
        return scaled._replace(ahead_ns=self.ahead_ns, tail_ns=self.tail_ns)


@dataclass(frozen=True, slots=True)
class Machine:
    """A platform, and the number of NCE tiles that may be used."""

    platform: Platform
    tiles: int
    _known: dict[tuple[int, int], tuple[float, int]] = field(
        default_factory=dict[tuple[int, int], tuple[float, int]], compare=False, repr=False
    )
    """Cache of ``_moved``, because thousands of choices move equal blocks."""

    @property
    def cmx_bytes(self) -> int:
        """Bytes of CMX to plan with, on each tile."""
        return int(self.platform.workspace_bytes * _USABLE)

    def tile_counts(self) -> list[int]:
        """Return the candidate numbers of tiles: powers of two, and all."""
        return sorted({1 << i for i in range(self.tiles.bit_length())} | {self.tiles})

    def move_ns(self, *moved: Moved) -> float:
        """Return the time of transfers that begin together and share all ports and DDR."""
        ports, longest, total = 0.0, 0.0, 0
        for one in moved:
            if one.count:
                alone, nbytes = self._moved(one.nbytes, one.run)
                ports += one.count * alone
                longest = max(longest, alone)
                total += one.count * nbytes
        in_ddr = total / ddr_bytes_per_ns(self.platform)
        return max(ports / self.platform.dma_ports, longest, in_ddr)

    def _moved(self, nbytes: int, run: int) -> tuple[float, int]:
        """Return the time of one transfer alone, and the bytes of DDR bandwidth that it takes."""
        known = self._known.get((nbytes, run))
        if known is None:
            alone = dma_ns(self.platform, nbytes, Space.DDR, Space.CMX, run)
            known = alone, padded_bytes(self.platform, nbytes, run)
            self._known[nbytes, run] = known
        return known
