"""Memory regions of a program, and their aliases.

Most operands share their region with others, so a program has few distinct regions, and aliases
are found once for each pair. Bytes that a program never writes, mainly weights, cause no
dependence and belong to no region.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driver_layer.engines.native.lower.arrays import Flags, Ints, equal_rows

MAX_PAIRS = 1 << 22
"""Limit of overlapping pairs, beyond which aliases are not computed; usual: some thousands."""


@dataclass(frozen=True, slots=True, eq=False)
class Aliases:
    """Aliases of each region.

    The aliases of region r are ``regions[first[r]:first[r + 1]]``, including r; ``covered`` is True
    for those that r contains completely.
    """

    first: Ints
    regions: Ints
    covered: Flags

    def __len__(self) -> int:
        return len(self.first) - 1


READ_ONLY = -1
"""Region number of bytes that are never written."""


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """Distinct regions of a program, and the region of each access.

    Attributes:
        table: begin, rows, pitch and width of each region, [regions, 4].
        numbers: number of each access's region, or READ_ONLY.
    """

    table: Ints
    numbers: Ints


def number_regions(begins: Ints, shapes: Ints, writes: Flags) -> Regions:
    """Number the distinct regions.

    Args:
        begins: host addresses of accesses, [n].
        shapes: rows, pitch and width of each access, [n, 3].
        writes: True for each access that writes.
    """
    numbers = np.full(len(begins), READ_ONLY, np.int64)
    written = np.flatnonzero(_touches_written(begins, shapes, writes))
    table = np.concatenate([begins[written, None], shapes[written]], axis=1)
    if not len(table):
        return Regions(table, numbers)
    first, group = equal_rows(table)
    numbers[written] = group
    return Regions(table[first], numbers)


def renumber_regions(
    regions: Regions, origin: Ints, split: Ints, begins: Ints, shapes: Ints
) -> Regions:
    """Number the regions of accesses after some have been split into parts.

    Args:
        regions: regions of the accesses before the split.
        origin: for each access, the number of the former access that contains it, [n].
        split: accesses that may be parts.
        begins: host addresses of these accesses, [split].
        shapes: rows, pitch and width of each, [split, 3].
    """
    numbers = regions.numbers[origin]
    rows = np.concatenate([begins[:, None], shapes], axis=1)
    whole = numbers[split]
    parts = (whole != READ_ONLY) & (rows != regions.table[whole]).any(axis=1)
    first, group = equal_rows(rows[parts])
    numbers[split[parts]] = len(regions.table) + group
    return Regions(np.concatenate([regions.table, rows[parts][first]]), numbers)


def find_aliases(regions: Ints) -> Aliases | None:
    """Return all pairs of aliasing regions; None if there are more than ``MAX_PAIRS``."""
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
    alias = _overlap(regions[one], regions[two])
    one, two = one[alias], two[alias]
    itself = np.arange(len(regions))
    of = np.concatenate([one, two, itself])
    aliases = np.concatenate([two, one, itself])
    sort = np.argsort(of, kind="stable")
    of, aliases = of[sort], aliases[sort]
    first = np.searchsorted(of, np.arange(len(regions) + 1))
    same = np.all(regions[of] == regions[aliases], axis=1)
    within = (regions[of, 1] == 1) & (begins[of] <= begins[aliases]) & (ends[of] >= ends[aliases])
    return Aliases(first, aliases, same | within)


def _touches_written(begins: Ints, shapes: Ints, writes: Flags) -> Flags:
    """Return True for each access that may touch bytes that any access writes."""
    ends = begins + (shapes[:, 0] - 1) * shapes[:, 1] + shapes[:, 2]
    order = np.argsort(begins[writes], kind="stable")
    starts = begins[writes][order]
    if not len(starts):
        return writes
    reach = np.maximum.accumulate(ends[writes][order])
    before = np.searchsorted(starts, ends, side="left") - 1
    return (before >= 0) & (reach[np.maximum(before, 0)] > begins)


def _overlap(one: Ints, two: Ints) -> Flags:
    """Return True for each pair of regions that overlap; the pairs' address ranges overlap.

    Row r of one and row s of two overlap if their distance, ``(s - r) * pitch + d``, is less than a
    width in either direction; a division decides whether such a row distance exists.
    """
    pitch = np.maximum(np.where(one[:, 1] > 1, one[:, 2], two[:, 2]), 1)
    comparable = (one[:, 1] == 1) | (two[:, 1] == 1) | (one[:, 2] == two[:, 2])
    distance = two[:, 0] - one[:, 0]
    lowest = np.maximum((distance - one[:, 3]) // pitch + 1, 1 - two[:, 1])
    highest = np.minimum(-(-(distance + two[:, 3]) // pitch) - 1, one[:, 1] - 1)
    return ~comparable | (lowest <= highest)


def find_segments(regions: Ints, chosen: Flags) -> tuple[Ints, Ints, int]:
    """Divide memory at the begin and end of each region, so that regions cover complete segments.

    Args:
        regions: table of regions, as in ``Regions``.
        chosen: regions to divide by; other regions cover no segment.

    Returns:
        First segment of each region, end of its segments, and the number of segments.
    """
    begins = regions[:, 0]
    ends = begins + (regions[:, 1] - 1) * regions[:, 2] + regions[:, 3]
    bounds = np.unique(np.concatenate([begins[chosen], ends[chosen]]))
    first = np.where(chosen, np.searchsorted(bounds, begins), 0)
    last = np.where(chosen, np.searchsorted(bounds, ends), 0)
    return first, last, len(bounds)
