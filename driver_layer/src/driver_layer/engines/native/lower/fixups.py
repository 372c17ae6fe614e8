"""Fixups: the addresses in a table, which are relocated when the program is rebased.

Lowering depends on addresses only through the overlap and adjacency of bytes. So spans that overlap
or touch form connected components: if each component moves rigidly, lowering yields the same table
with other addresses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driver_layer.engines.executor import Spans
from driver_layer.engines.native.dispatch.table import Table
from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.arrays import Flags, Ints
from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.table import LoweredProgram
from driver_layer.engines.native.lower.template import NO_WORD


@dataclass(frozen=True, slots=True, eq=False)
class _Components:
    """Connected components of spans that overlap or touch, ascending.

    Attributes:
        begins: first address of each component.
        ends: end address of each, exclusive.
        of_span: component of each span.
    """

    begins: Ints
    ends: Ints
    of_span: Ints

    @classmethod
    def of(cls, begins: Ints, sizes: Ints) -> _Components:
        """Find the components of spans."""
        order = np.argsort(begins, kind="stable")
        reach = np.maximum.accumulate((begins + sizes)[order])
        new = np.append(True, begins[order][1:] > reach[:-1])[: len(order)]
        of_span = np.empty(len(order), np.int64)
        of_span[order] = np.cumsum(new) - 1
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(order))[: len(first)] - 1
        return cls(begins[order][first], reach[last], of_span)

    def find(self, addresses: Ints) -> Ints | None:
        """Return the component of each address; None if an address is outside all of them."""
        found = np.searchsorted(self.begins, addresses, side="right") - 1
        known = np.maximum(found, 0)
        inside = (found >= 0) & (addresses <= self.ends[known])
        return known if inside.all() else None


@dataclass(frozen=True, slots=True, eq=False)
class _Overreads:
    """Reads that begin in a span and end beyond it, as those of a gather's table do.

    Attributes:
        span: span in which each read begins.
        offset: bytes from the span's begin.
        size: bytes of the read.
    """

    span: Ints
    offset: Ints
    size: Ints

    @classmethod
    def of(cls, spans: Spans, begins: Ints, sizes: Ints) -> _Overreads | None:
        """Find the span of each read; None if a read begins outside all spans."""
        inside = (spans.begins <= begins[:, None]) & (begins[:, None] < spans.begins + spans.sizes)
        if not inside.any(axis=1).all():
            return None
        span = inside.argmax(axis=1)
        return cls(span, begins - spans.begins[span], sizes)

    def added_to(self, spans: Spans) -> tuple[Ints, Ints]:
        """Return begins and sizes of the spans, followed by those of the overreads."""
        begins = np.append(spans.begins, spans.begins[self.span] + self.offset)
        return begins, np.append(spans.sizes, self.size)

    def fit(self, spans: Spans) -> bool:
        """Return whether the allocations of other spans have room for the overreads."""
        return bool((self.offset + self.size <= spans.rooms[self.span]).all())


@dataclass(frozen=True, slots=True, eq=False)
class Fixups:
    """Addresses in a table, and the component that each belongs to.

    Attributes:
        begins: begins of the program's spans, followed by those of its overreads.
        overreads: reads beyond the spans.
        components: components of the spans and overreads.
        written: True for components that the program writes to.
        words: words of the pool that are addresses.
        component: component of each such word.
        streams: component of each stream.
    """

    begins: Ints
    overreads: _Overreads
    components: _Components
    written: Flags
    words: Ints
    component: npt.NDArray[np.int32]
    streams: Ints

    def rebased(self, table: Table, spans: Spans) -> Table | None:
        """Return the table for other spans; None if the components do not move rigidly."""
        by_component = self._offsets(spans)
        if by_component is None:
            return None
        pool = table.pool.copy()
        pool[self.words] += by_component[self.component]
        read = table.streams.spans.copy()
        read[:, 0] += by_component[self.streams]
        return table.with_arguments(pool, replace(table.streams, spans=read))

    def _offsets(self, spans: Spans) -> Ints | None:
        """Return the offset of each component; None if a component does not move rigidly."""
        of_span, overreads = self.components.of_span, self.overreads
        if len(spans.begins) + len(overreads.span) != len(of_span) or not overreads.fit(spans):
            return None
        offsets = overreads.added_to(spans)[0] - self.begins
        by_component = np.zeros(len(self.components.begins), np.int64)
        by_component[of_span] = offsets
        rigid = (by_component[of_span] == offsets).all()
        if not rigid or (self.written[of_span[: len(spans.begins)]] & ~spans.writable).any():
            return None
        # Components that touch only after the move stay separate, as they were lowered.
        sizes = self.components.ends - self.components.begins - 1
        merged = _Components.of(self.components.begins + by_component, sizes).of_span
        alone = np.bincount(merged)[merged] == 1
        # Components that are only read may overlap.
        written = np.bincount(merged, self.written)[merged] > 0
        return by_component if (alone | ~written).all() else None


def find_fixups(lowered: LoweredProgram, accesses: Accesses, spans: Spans) -> Fixups | None:
    """List the addresses in a table.

    Args:
        lowered: the table and its calls.
        accesses: accesses of the program.
        spans: all memory of the program.

    Returns:
        The fixups; None if the table holds addresses outside its calls' arguments, as tasks of
        the reference engine do, or if the program accesses memory outside the spans.
    """
    calls = lowered.calls
    used: list[int] = np.unique(calls.template).tolist()
    if any(calls.templates[number].spec is None for number in used):
        return None
    overreads = _find_overreads(accesses, spans)
    if overreads is None:
        return None
    begins, sizes = overreads.added_to(spans)
    components = _Components.of(begins, sizes)
    words, read = _address_words(calls), lowered.table.streams.spans[:, 0]
    component, streams = components.find(calls.pool[words]), components.find(read)
    written = components.find(accesses.hosts[accesses.writes])
    if component is None or streams is None or written is None:
        return None
    is_written = np.zeros(len(components.begins), np.bool_)
    is_written[written] = True
    component = component.astype(np.int32)
    return Fixups(begins, overreads, components, is_written, words, component, streams)


def _find_overreads(accesses: Accesses, spans: Spans) -> _Overreads | None:
    """Find accesses that end beyond the spans; None if one writes, or begins outside all spans."""
    components = _Components.of(spans.begins, spans.sizes)
    shapes, hosts = accesses.shapes, accesses.hosts
    extents = (shapes[:, 0] - 1) * shapes[:, 1] + shapes[:, 2]
    found = components.find(hosts)
    if found is None:
        return None
    beyond = hosts + extents > components.ends[found]
    if (beyond & accesses.writes).any():
        return None
    different = np.unique(np.stack([hosts[beyond], extents[beyond]], axis=1), axis=0)
    return _Overreads.of(spans, different[:, 0], different[:, 1])


def _address_words(calls: Calls) -> Ints:
    """Return the words of the pool that hold addresses of operands."""
    found: list[Ints] = []
    used: list[int] = np.unique(calls.template).tolist()
    for number in used:
        words = {slot.word for slot in calls.templates[number].slots} - {NO_WORD}
        begins = calls.begin[calls.template == number]
        found.append((begins[:, None] + np.array(sorted(words), np.int64)).reshape(-1))
    return np.concatenate(found) if found else np.zeros(0, np.int64)
