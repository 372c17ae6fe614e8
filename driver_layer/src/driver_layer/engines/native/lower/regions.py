"""Which of the bytes that operations reach overlap.

Most operands lie where others lie too: a program has few different regions, so what overlaps is
found once for each pair of them. Bytes that a program never writes, its weights above all, order
nothing and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driver_layer.engines.native.lower.addresses import Flags
from driver_layer.engines.native.lower.groups import Ints, equal_rows

MAX_PAIRS = 1 << 22
"""More pairs of regions than this are not looked at; the compiler's programs have thousands."""


@dataclass(frozen=True, slots=True, eq=False)
class Overlaps:
    """The regions of a program.

    Those that overlap region r are ``others[first[r]:first[r + 1]]``, itself among them;
    ``inside`` tells which of these lie in r as a whole.
    """

    first: Ints
    others: Ints
    inside: Flags

    def __len__(self) -> int:
        return len(self.first) - 1


FIXED = -1
"""Stands for the region of bytes that are never written."""


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """The different regions of a program, and which one each access has.

    Attributes:
        table: begin, rows, pitch and width of each, [regions, 4].
        numbers: that of each access's region, or FIXED.
    """

    table: Ints
    numbers: Ints


def number_regions(begins: Ints, shapes: Ints, writes: Flags) -> Regions:
    """Give equal regions equal numbers.

    Args:
        begins: host addresses of accesses, [n].
        shapes: rows, pitch and width of each, [n, 3].
        writes: which of them write.
    """
    numbers = np.full(len(begins), FIXED, np.int64)
    ordered = np.flatnonzero(_touches_written(begins, shapes, writes))
    table = np.concatenate([begins[ordered, None], shapes[ordered]], axis=1)
    if not len(table):
        return Regions(table, numbers)
    first, group = equal_rows(table)
    numbers[ordered] = group
    return Regions(table[first], numbers)


def renumber_regions(
    regions: Regions, origin: Ints, cut: Ints, begins: Ints, shapes: Ints
) -> Regions:
    """Number the regions of accesses of which some are parts of what they were.

    Args:
        regions: of the accesses as they were.
        origin: for each access, which of these it is, or is a part of, [n].
        cut: the accesses that may be parts.
        begins: host addresses of these, [cut].
        shapes: rows, pitch and width of each, [cut, 3].
    """
    numbers = regions.numbers[origin]
    rows = np.concatenate([begins[:, None], shapes], axis=1)
    whole = numbers[cut]
    parts = (whole != FIXED) & (rows != regions.table[whole]).any(axis=1)
    first, group = equal_rows(rows[parts])
    numbers[cut[parts]] = len(regions.table) + group
    return Regions(np.concatenate([regions.table, rows[parts][first]]), numbers)


def find_overlaps(regions: Ints) -> Overlaps | None:
    """Find all pairs of regions that overlap; None if there are too many to look at."""
    begins = regions[:, 0]
    ends = begins + (regions[:, 1] - 1) * regions[:, 2] + regions[:, 3]
    order = np.argsort(begins, kind="stable")
    later = np.searchsorted(begins[order], ends[order], side="left")
    counts = later - np.arange(len(order)) - 1
    if counts.sum() > MAX_PAIRS:
        return None
    left = np.repeat(np.arange(len(order)), counts)
    right = left + 1 + np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
    one, two = order[left], order[right]
    meet = _overlap(regions[one], regions[two])
    one, two = one[meet], two[meet]
    itself = np.arange(len(regions))
    of = np.concatenate([one, two, itself])
    others = np.concatenate([two, one, itself])
    sort = np.argsort(of, kind="stable")
    of, others = of[sort], others[sort]
    first = np.searchsorted(of, np.arange(len(regions) + 1))
    same = np.all(regions[of] == regions[others], axis=1)
    within = (regions[of, 1] == 1) & (begins[of] <= begins[others]) & (ends[of] >= ends[others])
    return Overlaps(first, others, same | within)


def _touches_written(begins: Ints, shapes: Ints, writes: Flags) -> Flags:
    """Tell which accesses come near bytes that any access writes."""
    ends = begins + (shapes[:, 0] - 1) * shapes[:, 1] + shapes[:, 2]
    order = np.argsort(begins[writes], kind="stable")
    starts = begins[writes][order]
    if not len(starts):
        return writes
    reach = np.maximum.accumulate(ends[writes][order])
    before = np.searchsorted(starts, ends, side="left") - 1
    return (before >= 0) & (reach[np.maximum(before, 0)] > begins)


def _overlap(one: Ints, two: Ints) -> Flags:
    """Tell which pairs of regions overlap, of those whose spans do.

    Row r of one and row s of two meet if their distance, ``(s - r) * pitch + d``, is less than a
    width to either side; whether there is such a row distance needs only a division.
    """
    pitch = np.maximum(np.where(one[:, 1] > 1, one[:, 2], two[:, 2]), 1)
    comparable = (one[:, 1] == 1) | (two[:, 1] == 1) | (one[:, 2] == two[:, 2])
    distance = two[:, 0] - one[:, 0]
    lowest = np.maximum((distance - one[:, 3]) // pitch + 1, 1 - two[:, 1])
    highest = np.minimum(-(-(distance + two[:, 3]) // pitch) - 1, one[:, 1] - 1)
    return ~comparable | (lowest <= highest)


def find_segments(regions: Ints, chosen: Flags) -> tuple[Ints, Ints, int]:
    """Cut memory wherever a region begins or ends, so that each covers whole segments.

    Args:
        regions: as ``number_regions`` gives them.
        chosen: which of them are looked at; the others cover none.

    Returns:
        The first segment of each region, the one behind its last, and how many there are.
    """
    begins = regions[:, 0]
    ends = begins + (regions[:, 1] - 1) * regions[:, 2] + regions[:, 3]
    cuts = np.unique(np.concatenate([begins[chosen], ends[chosen]]))
    first = np.where(chosen, np.searchsorted(cuts, begins), 0)
    last = np.where(chosen, np.searchsorted(cuts, ends), 0)
    return first, last, len(cuts)
