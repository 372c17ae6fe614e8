"""What of a table are addresses, so that it serves the same program elsewhere.

Lowering looks at which bytes overlap, which follow each other, and at nothing else of addresses. So
pieces of memory that overlap or touch are *islands*: a program whose islands are moved, each as a
whole, is lowered to the same table with other addresses in it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driver_layer.engines.contract import Spans
from driver_layer.engines.native.dispatch.table import Table
from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.addresses import Flags
from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.groups import Ints
from driver_layer.engines.native.lower.table import Flattened
from driver_layer.engines.native.lower.template import NO_WORD


@dataclass(frozen=True, slots=True, eq=False)
class _Islands:
    """Pieces of memory that overlap or touch, ascending.

    Attributes:
        begins: where each begins.
        ends: the first address behind each.
        of_span: the island of each span.
    """

    begins: Ints
    ends: Ints
    of_span: Ints

    @classmethod
    def of(cls, begins: Ints, sizes: Ints) -> _Islands:
        """Join spans."""
        order = np.argsort(begins, kind="stable")
        reach = np.maximum.accumulate((begins + sizes)[order])
        new = np.append(True, begins[order][1:] > reach[:-1])[: len(order)]
        of_span = np.empty(len(order), np.int64)
        of_span[order] = np.cumsum(new) - 1
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(order))[: len(first)] - 1
        return cls(begins[order][first], reach[last], of_span)

    def find(self, addresses: Ints) -> Ints | None:
        """The island that each address lies in; None if one lies in none."""
        found = np.searchsorted(self.begins, addresses, side="right") - 1
        known = np.maximum(found, 0)
        inside = (found >= 0) & (addresses <= self.ends[known])
        return known if inside.all() else None


@dataclass(frozen=True, slots=True, eq=False)
class _Reaches:
    """Reads that begin in a span and end behind it, as of a gather's table.

    Attributes:
        span: the one that each begins in.
        offset: bytes from its begin.
        size: bytes that are read.
    """

    span: Ints
    offset: Ints
    size: Ints

    @classmethod
    def of(cls, spans: Spans, begins: Ints, sizes: Ints) -> _Reaches | None:
        """Find whose reads these are; None if one is nobody's."""
        inside = (spans.begins <= begins[:, None]) & (begins[:, None] < spans.begins + spans.sizes)
        if not inside.any(axis=1).all():
            return None
        span = inside.argmax(axis=1)
        return cls(span, begins - spans.begins[span], sizes)

    def added_to(self, spans: Spans) -> tuple[Ints, Ints]:
        """Begins and sizes of spans, and then of these."""
        begins = np.append(spans.begins, spans.begins[self.span] + self.offset)
        return begins, np.append(spans.sizes, self.size)

    def fit(self, spans: Spans) -> bool:
        """Whether there is as much to read in spans elsewhere."""
        return bool((self.offset + self.size <= spans.rooms[self.span]).all())


@dataclass(frozen=True, slots=True, eq=False)
class Anchors:
    """Where a table has addresses, and what they belong to.

    Attributes:
        begins: where the program's spans, and what reaches beyond them, began.
        reaches: what does.
        islands: what they were joined to.
        written: which islands the program writes to.
        places: the words of the pool that are addresses.
        island: that of each.
        streams: the island of each address in the table of streams.
    """

    begins: Ints
    reaches: _Reaches
    islands: _Islands
    written: Flags
    places: Ints
    island: npt.NDArray[np.int32]
    streams: Ints

    def moved(self, table: Table, spans: Spans) -> Table | None:
        """Give the table for spans elsewhere; None if islands do not stay what they are."""
        by_island = self._distances(spans)
        if by_island is None:
            return None
        pool = table.pool.copy()
        pool[self.places] += by_island[self.island]
        read = table.streams.spans.copy()
        read[:, 0] += by_island[self.streams]
        return table.with_arguments(pool, replace(table.streams, spans=read))

    def _distances(self, spans: Spans) -> Ints | None:
        """How far each island moves."""
        of_span, reaches = self.islands.of_span, self.reaches
        if len(spans.begins) + len(reaches.span) != len(of_span) or not reaches.fit(spans):
            return None
        moves = reaches.added_to(spans)[0] - self.begins
        by_island = np.zeros(len(self.islands.begins), np.int64)
        by_island[of_span] = moves
        rigid = (by_island[of_span] == moves).all()
        if not rigid or (self.written[of_span[: len(spans.begins)]] & ~spans.writable).any():
            return None
        # Those that only touch now are no island: they were looked at as two.
        sizes = self.islands.ends - self.islands.begins - 1
        met = _Islands.of(self.islands.begins + by_island, sizes).of_span
        alone = np.bincount(met)[met] == 1
        # Who only reads may read the same.
        return by_island if (alone | ~_any_of(met, self.written)).all() else None


def _any_of(group: Ints, flags: Flags) -> Flags:
    """For each member whether a flag of its group is set."""
    return np.bincount(group, flags)[group] > 0


def find_anchors(flattened: Flattened, accesses: Accesses, spans: Spans) -> Anchors | None:
    """Find what of a table are addresses.

    Args:
        flattened: the table.
        accesses: all that the program reaches.
        spans: all of its memory.

    Returns:
        None if the table has more of the memory than its calls' arguments tell, as what the
        reference engine runs has; or if the program reaches beyond the spans.
    """
    calls = flattened.calls
    used: list[int] = np.unique(calls.template).tolist()
    if any(calls.templates[number].spec is None for number in used):
        return None
    reaches = _find_reaches(accesses, spans)
    if reaches is None:
        return None
    begins, sizes = reaches.added_to(spans)
    islands = _Islands.of(begins, sizes)
    places, read = _address_words(calls), flattened.table.streams.spans[:, 0]
    island, streams = islands.find(calls.pool[places]), islands.find(read)
    written = islands.find(accesses.hosts[accesses.writes])
    if island is None or streams is None or written is None:
        return None
    is_written = np.zeros(len(islands.begins), np.bool_)
    is_written[written] = True
    return Anchors(begins, reaches, islands, is_written, places, island.astype(np.int32), streams)


def _find_reaches(accesses: Accesses, spans: Spans) -> _Reaches | None:
    """Find what reaches beyond the spans; None if it is written, or begins elsewhere."""
    islands = _Islands.of(spans.begins, spans.sizes)
    shapes, hosts = accesses.shapes, accesses.hosts
    extents = (shapes[:, 0] - 1) * shapes[:, 1] + shapes[:, 2]
    found = islands.find(hosts)
    if found is None:
        return None
    beyond = hosts + extents > islands.ends[found]
    if (beyond & accesses.writes).any():
        return None
    different = np.unique(np.stack([hosts[beyond], extents[beyond]], axis=1), axis=0)
    return _Reaches.of(spans, different[:, 0], different[:, 1])


def _address_words(calls: Calls) -> Ints:
    """The words of the pool that hold addresses of operands."""
    found: list[Ints] = []
    used: list[int] = np.unique(calls.template).tolist()
    for number in used:
        words = {slot.word for slot in calls.templates[number].slots} - {NO_WORD}
        begins = calls.begin[calls.template == number]
        found.append((begins[:, None] + np.array(sorted(words), np.int64)).reshape(-1))
    return np.concatenate(found) if found else np.zeros(0, np.int64)
