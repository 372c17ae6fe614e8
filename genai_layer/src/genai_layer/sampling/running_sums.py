"""Running f32 sums of many weights, computed only where a draw needs them.

Each sum is the one before it plus a weight, rounded to f32. Between two powers of two, f32 numbers
are multiples of one unit: adding a weight there adds the nearest multiple, whatever the sum is,
unless the weight is exactly between two. So weights can be added in any order, all at once, while
their sum stays below the next power of two. They are added one by one only around these powers and
around the sum that is searched; weights in falling order are sorted only there.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Weights = npt.NDArray[np.float32]
"""f32 [n], not negative."""
Indices = npt.NDArray[np.int64]
Sums = npt.NDArray[np.float64]

_FEW = 8192
"""Weights that are one block: adding them one by one costs less than choosing some."""
_BLOCK = 1024
_JUMP = 64
"""Most blocks added at once: their arrays stay in the processor's cache."""
_MARGIN = 1 / 256
"""Share of the missing sum by which a sum of rough weights may miss it."""
_TIES = 64
"""Most weights between two multiples for which the sums before them are computed."""
_SIGNIFICANT = 2.0**24
"""Multiples of its unit at which a sum reaches the next power of two."""
_TINY = 2.0**-100
"""Sum from which on the reciprocal of its unit is finite in f32."""


@dataclass(frozen=True, slots=True)
class Place:
    """Place in the order of weights, and the sum there."""

    rank: int
    weight: np.float32
    sum: np.float32


class Order(Protocol):
    """Order of weights, in blocks of some hundreds."""

    starts: Indices
    """Ranks of the first weights of the blocks, and the number of weights."""
    rough: Sums
    """Approximate sums before the blocks, and after all."""

    def some(self, first: int, end: int) -> Weights:
        """Return the weights of some blocks, in any order."""
        ...

    def ordered(self, first: int, end: int) -> Weights:
        """Return the weights of some blocks, in order."""
        ...

    def before(self, some: Weights, units: Weights, ties: Indices) -> tuple[Indices, Sums]:
        """Return ties in order, and the sum of the units before each.

        Args:
            some: weights that ``some`` returned.
            units: their units, 0 at ties.
            ties: indices of at least one weight, rising.
        """
        ...

    def index(self, place: Place) -> int:
        """Return the index of the weight at a place."""
        ...

    def last(self) -> tuple[int, np.float32]:
        """Return the rank of the last weight that is not 0, and that weight."""
        ...


class AsGiven:
    """Order of weights as they are given."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self.starts = np.array([0, *range(_FEW, len(weights), _BLOCK), len(weights)])
        self.rough = np.zeros(len(self.starts))
        np.add.reduceat(weights, self.starts[:-1]).cumsum(dtype=np.float64, out=self.rough[1:])

    def some(self, first: int, end: int) -> Weights:
        """Return the weights of some blocks."""
        return self._weights[self.starts[first] : self.starts[end]]

    ordered = some

    def before(self, some: Weights, units: Weights, ties: Indices) -> tuple[Indices, Sums]:
        """Return the indices as they are, and the sums before them."""
        pieces = np.add.reduceat(units, np.concatenate(([0], ties)))
        return ties, pieces[:-1].cumsum(dtype=np.float64)

    def index(self, place: Place) -> int:
        """Return the rank."""
        return place.rank

    def last(self) -> tuple[int, np.float32]:
        """Return the last weight that is not 0."""
        rank = int(np.flatnonzero(self._weights)[-1])
        return rank, self._weights[rank]


class Falling:
    """Order of weights from the largest to the smallest; of equal ones, the first precedes.

    Blocks are ranges of values, bounded by the upper halves of the bits of floats.
    """

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._keys = np.empty(len(weights), np.uint16)
        shift = 16 if len(weights) > _FEW else 31  # few weights share a key, and so a block
        np.right_shift(weights.view(np.uint32), shift, out=self._keys, casting="unsafe")
        counts = np.bincount(self._keys)
        keys = np.flatnonzero(counts)[::-1]
        ends = counts[keys].cumsum()
        middles = ((keys << 16) + (1 << 15)).astype(np.uint32).view(np.float32)
        sums = (counts[keys] * middles.astype(np.float64)).cumsum()
        last = np.flatnonzero(np.diff(ends // _BLOCK, append=-1))
        self.starts = np.concatenate(([0], ends[last]))
        self.rough = np.concatenate(([0.0], sums[last]))
        self._bounds = np.concatenate(([0], keys[last])).astype(np.uint16)
        """Keys of a block are below the bound at its number, and not below the next one."""

    def some(self, first: int, end: int) -> Weights:
        """Return the weights of some blocks, in the order of their indices."""
        chosen = self._keys >= self._bounds[end]
        if first:
            chosen &= self._keys < self._bounds[first]
        return self._weights[np.flatnonzero(chosen)]

    def ordered(self, first: int, end: int) -> Weights:
        """Return the weights of some blocks, sorted."""
        weights = self.some(first, end)
        return weights if weights.min() == weights.max() else np.sort(weights)[::-1]

    def before(self, some: Weights, units: Weights, ties: Indices) -> tuple[Indices, Sums]:
        """Return the indices, those of larger weights first, and the sums of larger weights."""
        falling = ties[np.argsort(-some[ties])]
        values, groups = np.unique(some[falling], return_inverse=True)
        return falling, np.array([units @ (some > value) for value in values], float)[groups]

    def index(self, place: Place) -> int:
        """Return the index of the weight at a place."""
        larger = np.count_nonzero(self._weights > place.weight)
        return int(np.flatnonzero(self._weights == place.weight)[place.rank - larger])

    def last(self) -> tuple[int, np.float32]:
        """Return the smallest weight that is not 0."""
        positive = self._weights[self._weights > 0]
        return len(positive) - 1, positive.min()


class RunningSums:
    """Running sums of weights in an order.

    Args:
        order: order of at least one weight.
    """

    def __init__(self, order: Order) -> None:
        self.order = order
        self._blocks = [0]
        """Numbers of blocks whose sum before them is known, rising."""
        self._sums = [np.float32(0)]
        """Sums before these blocks."""
        self._added: dict[tuple[int, int], tuple[Weights, Weights]] = {}
        """Results of ``_one_by_one``, of which a draw may need the last one again."""

    @property
    def total(self) -> np.float32:
        """The last sum."""
        self.first_above(np.inf)
        return self._sums[-1]

    def last(self) -> Place:
        """Return the last place whose weight is not 0."""
        return Place(*self.order.last(), self.total)

    def first_above(self, limit: float) -> Place | None:
        """Return the first place whose sum exceeds a limit, at least 0; None if none does."""
        known = bisect_right(self._sums, limit) - 1
        block, before = self._blocks[known], self._sums[known]
        while block < len(self.order.starts) - 1:
            end, after = self._jump(block, before, limit)
            if after is None or after > limit:
                weights, sums = self._one_by_one(block, end, before)
                if (after := sums[-1]) > limit:
                    at = int(np.searchsorted(sums, limit, "right"))
                    return Place(int(self.order.starts[block]) + at, weights[at], sums[at])
            block, before = end, after
            if block > self._blocks[-1]:
                self._blocks.append(block)
                self._sums.append(before)
        return None

    def _one_by_one(self, block: int, end: int, before: np.float32) -> tuple[Weights, Weights]:
        """Return the weights of some blocks in order, and the sum after each."""
        if (block, end) not in self._added:
            weights = self.order.ordered(block, end)
            sums = weights.copy()
            sums[0] += before
            sums = sums.cumsum()
            self._added[block, end] = weights, sums
        return self._added[block, end]

    def _jump(self, block: int, before: np.float32, limit: float) -> tuple[int, np.float32 | None]:
        """Add all blocks that precede the next power of two and the limit, else those around it.

        Args:
            block: number of the first block.
            before: the sum before it.
            limit: see ``first_above``.

        Returns:
            The end of the blocks, and the sum there; None if they have to be added one by one.
        """
        rough = self.order.rough
        if block + 2 == len(rough):
            return block + 1, None
        power = 2.0 ** np.frexp(before)[1] if before > _TINY else _TINY
        aim = min(power, limit)
        missing = aim - float(before)
        place, margin = float(rough[block]) + missing, _MARGIN * missing
        end = int(rough.searchsorted(place - margin)) - 1
        if end > block + 1:  # a single block is added one by one as fast
            end = min(end, block + _JUMP)
            return end, _added(self.order, self.order.some(block, end), before)
        end = max(int(rough.searchsorted(place + margin)), block + 1)
        return min(end, len(rough) - 1), None


def _added(order: Order, some: Weights, before: np.float32) -> np.float32 | None:
    """Return a sum after weights; None if they have to be added one by one.

    Args:
        order: their order.
        some: the weights.
        before: the sum before them.
    """
    if before < _TINY:
        return None if some.any() else before
    unit = float(np.spacing(before))
    parts = some * np.float32(1 / unit)
    units = np.rint(parts)
    parts -= units
    ties = (np.abs(parts, out=parts) == 0.5).nonzero()[0]
    if len(ties) > _TIES:
        return None
    count, done = float(before) / unit, 0.0
    if len(ties):
        units[ties] = 0
        for tie, earlier in zip(*order.before(some, units, ties), strict=True):
            count += float(earlier) - done + float(some[tie]) // unit
            count += count % 2  # a tie is rounded to the even multiple
            done = float(earlier)
    count += float(units.sum()) - done  # exact: integers below 2 ** 24
    return np.float32(count * unit) if count <= _SIGNIFICANT else None
