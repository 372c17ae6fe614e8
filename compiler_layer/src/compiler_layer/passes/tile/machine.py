"""What a choice of blocks is priced for: the engines of a platform, and how they overlap.

How it works. An op runs as steps; while one computes, DMA loads what the next needs and stores what
the last made. A step therefore takes as long as the slowest of the three, if CMX has room for it;
otherwise they take turns. What single tasks take is a matter of ``driver_layer.abi.cost``.
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
"""What a task costs beyond its work: its issue and its barriers (A: nothing public says)."""

_USABLE = 0.97
"""The part of CMX that is planned with; alignment and gaps between buffers take the rest."""


def round_up(value: int, grain: int) -> int:
    """The next multiple."""
    return -(-value // grain) * grain


@cache
def width(element: str) -> float:
    """Bytes of an element; half a byte of one of four bits."""
    return 0.5 if element in FOUR_BIT else NUMPY[element].itemsize


def cuts(length: int, grain: int = 1, most: int | None = None) -> Iterator[int]:
    """Block sizes of a dimension, largest first: cut into 1, 2, 3, 4, 6, 8, 12, 16 … equal parts.

    Args:
        length: of the dimension.
        grain: sizes below the whole length are multiples of this.
        most: the largest size wanted.
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
    """Transfers of one size between DDR and CMX; ``run`` bytes of it lie together in DDR."""

    count: int
    nbytes: int
    run: int


class Pipeline(NamedTuple):
    """Equal steps that overlap with their loads and stores.

    ``first_ns`` is the load that nothing hides; ``steps`` may be fractional, where the last is
    smaller. ``overlaps`` tells whether CMX has room for the loads of the next step.
    """

    first_ns: float
    steps: float
    load_ns: float
    work_ns: float
    store_ns: float
    overlaps: bool

    @property
    def dma_ns(self) -> float:
        """How long transfers take, one after the other."""
        later = max(0.0, self.steps - 1) * self.load_ns
        return self.first_ns + later + self.steps * self.store_ns

    @property
    def ns(self) -> float:
        """The whole time."""
        if self.overlaps:
            between = max(self.load_ns, self.work_ns, self.store_ns)
            return self.first_ns + max(0.0, self.steps - 1) * between + self.work_ns + self.store_ns
        turn = self.load_ns + self.work_ns
        return self.first_ns - self.load_ns + self.steps * turn + self.store_ns


class Price(NamedTuple):
    """What an op takes, cut in a certain way; tasks are averages and need not be whole."""

    work_ns: float
    """From its begin to its end, if it has the device for itself and tasks begin at once."""
    dma_ns: float
    """How long transfers move something."""
    dpu_ns: float
    """How long the DPU of one tile works."""
    shave_ns: float
    transfers: float
    products: float
    invocations: float
    ahead_ns: float = 0.0
    """Of its begin, what weights take that may be loaded before."""
    tail_ns: float = 0.0
    """Of its end, what follows the last load: the next op's loads may begin there."""

    @property
    def tasks(self) -> float:
        """Tasks of all engines."""
        return self.transfers + self.products + self.invocations

    @property
    def ns(self) -> float:
        """What choices are compared by: the work, and what its tasks cost beside it."""
        return self.work_ns + self.tasks * TASK_NS

    def times(self, factor: float) -> Price:
        """So many of them, one after the other."""
        scaled = Price(*(factor * each for each in self))
        return scaled._replace(ahead_ns=self.ahead_ns, tail_ns=self.tail_ns)


@dataclass(frozen=True, slots=True)
class Machine:
    """A platform, and how many of its NCE tiles may be used."""

    platform: Platform
    tiles: int
    _known: dict[tuple[int, int], tuple[float, int]] = field(
        default_factory=dict[tuple[int, int], tuple[float, int]], compare=False, repr=False
    )
    """What ``_moved`` has given, as thousands of choices move the same blocks."""

    @property
    def cmx_bytes(self) -> int:
        """What may be planned with, on each tile."""
        return int(self.platform.workspace_bytes * _USABLE)

    def tile_counts(self) -> list[int]:
        """Numbers of tiles worth trying: powers of two, and all."""
        return sorted({1 << i for i in range(self.tiles.bit_length())} | {self.tiles})

    def move_ns(self, *moved: Moved) -> float:
        """Give the time of transfers that begin together, shared by all ports and DDR."""
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
        """The time of one transfer by itself, and the bytes that it takes of DDR's bandwidth."""
        known = self._known.get((nbytes, run))
        if known is None:
            alone = dma_ns(self.platform, nbytes, Space.DDR, Space.CMX, run)
            known = alone, padded_bytes(self.platform, nbytes, run)
            self._known[nbytes, run] = known
        return known
