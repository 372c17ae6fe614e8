"""Copies that need not be made.

On the device all operands lie in CMX, and transfers bring and take them. Here CMX is memory like
any other, so a copy into CMX is left out where its readers can read its source, and a copy out of
CMX where the operation that made the bytes can write its destination. Whether they can is decided
on the tasks in their order, with the bytes of every operand known:

- a reader goes to a copy's source if the copy is the last to have written what it reads, and its
  source has not been written since, nor is by the reader itself;
- a writer goes to a copy's destination if that copy is the only one to read what it wrote, and
  nobody reaches the destination in between.

CMX holds nothing when a program begins, and nobody looks at it when it ends (``engines.contract``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driver_layer.abi.platforms import CMX_BASE, TILE_OFFSET_MASK, TILE_SELECT_MASK
from driver_layer.engines.native.jit.emitter import I64, Value
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.addresses import Flags
from driver_layer.engines.native.lower.groups import Ints
from driver_layer.engines.native.lower.moves import find_ways
from driver_layer.engines.native.lower.regions import FIXED, Regions, find_segments
from driver_layer.engines.native.lower.template import Access
from driver_layer.engines.native.lower.walk import (
    DENSE,
    NONE,
    Array,
    Ground,
    Walk,
    Written,
    flags,
    walk_kernel,
)


@dataclass(frozen=True, slots=True, eq=False)
class Forwarding:
    """What is left out.

    Attributes:
        copies: for each access, the operation (a copy) through which it goes, or NONE.
        dropped: the operations that are not executed.
        regions: the region of each access, as it then is.
    """

    copies: Ints
    dropped: Flags
    regions: Ints


def forward(
    accesses: Accesses, regions: Regions, ground: Ground, pinned: Flags, kernels: Kernels
) -> Forwarding:
    """Find the copies that need not be made.

    Args:
        accesses: all operations in their order.
        regions: of the accesses.
        ground: the same, to walk over.
        pinned: the operations whose operands cannot be moved.
        kernels: of the host.
    """
    into_cmx, out_of_cmx = copies_of_cmx(accesses, pinned)
    numbers = regions.numbers
    reads = np.full(len(numbers), NONE, np.int64)
    ground.walk(
        kernels, _READS,
        numbers, flags(into_cmx), flags(pinned), reads,
        ground.regions(NONE), ground.regions(NONE), ground.regions(NONE),
    )  # fmt: skip
    _keep_movable(accesses, reads)
    forwarded = reads != NONE
    effective = numbers.copy()
    effective[forwarded] = numbers[accesses.first[reads[forwarded]]]

    writes = np.full(len(numbers), NONE, np.int64)
    uses = np.zeros(len(numbers), np.int64)
    begin, end, segments = find_segments(regions.table, _cmx_regions(accesses, regions))
    ground.walk(
        kernels, _WRITES,
        numbers, effective, flags(out_of_cmx), flags(pinned | into_cmx), reads, writes, uses,
        ground.regions(NONE), ground.regions(NONE), ground.regions(NONE),
        begin, end, np.full(segments, NONE, np.int64), flags(regions.table[:, 1] == 1),
    )  # fmt: skip
    writes[uses != 1] = NONE
    _keep_movable(accesses, writes)
    sunk = writes != NONE
    effective[sunk] = numbers[accesses.first[writes[sunk]] + 1]
    dropped = np.zeros_like(into_cmx)
    inward = np.flatnonzero(into_cmx)
    # The second access of a copy is its destination.
    dropped[inward] = uses[accesses.first[inward] + 1] == 0
    dropped[writes[sunk]] = True
    return Forwarding(np.where(sunk, writes, reads), dropped, effective)


def copies_of_cmx(accesses: Accesses, pinned: Flags) -> tuple[Flags, Flags]:
    """Which operations copy into CMX, and which out of it into other memory."""
    copies = np.array([one.copies for one in accesses.templates], np.bool_)[accesses.template]
    numbers = np.flatnonzero(copies & ~pinned)
    source, target = (_in_cmx(accesses.addresses[accesses.first[numbers] + i]) for i in (0, 1))
    into, out = np.zeros_like(copies), np.zeros_like(copies)
    into[numbers], out[numbers] = target, source & ~target
    return into, out


def _in_cmx(addresses: Ints) -> Flags:
    return addresses & ~(TILE_SELECT_MASK | TILE_OFFSET_MASK) == CMX_BASE


def _cmx_regions(accesses: Accesses, regions: Regions) -> Flags:
    found = np.zeros(len(regions.table), np.bool_)
    real = regions.numbers != FIXED
    found[regions.numbers[real]] = _in_cmx(accesses.addresses[real])
    return found


def _keep_movable(accesses: Accesses, copies: Ints) -> None:
    """Forget the copies through which an operand cannot go."""
    for way in find_ways(accesses, copies):
        if way.moved is None:
            copies[way.accesses] = NONE


def _walk_reads(walk: Walk) -> None:
    """Find the copy that each access could read through."""
    regions, _, pinned, _, written_by, writer, own_writes = walk.own
    written = Written(written_by, writer)
    with walk.operations() as operation:
        with (
            walk.accesses(operation, Access.WRITE) as access,
            walk.neighbours(regions[access]) as (other, _),
        ):
            own_writes[other] = operation
        movable = walk.same(pinned[operation], I64(0))
        with walk.when(movable), walk.accesses(operation, Access.READ) as access:
            region = regions[access]
            reads_alone = walk.b.not_(walk.has(access, Access.WRITE))
            with walk.when(walk.is_real(region), reads_alone):
                _see_source(walk, operation, access, written.access[region])
        with walk.accesses(operation, Access.WRITE) as access:
            walk.note_written(operation, access, regions[access], written)


def _see_source(walk: Walk, operation: Value, access: Value, writer: Value) -> None:
    """Note the copy that wrote what an access reads, if its source still is what it was."""
    regions, into_cmx, _, reads, written_by, _, own_writes = walk.own
    with walk.when(walk.is_real(writer)):
        copy = walk.owners[writer]
        with walk.when(walk.true(into_cmx[copy])):
            source = regions[walk.first[copy]]
            with walk.b.if_else(walk.is_real(source)) as (changes, stays):
                with changes:
                    since = walk.less(written_by[source], copy)
                    others = walk.b.not_(walk.same(own_writes[source], operation))
                    with walk.when(since, others):
                        reads[access] = copy
                with stays:
                    reads[access] = copy


_READS = walk_kernel("forward reads", 7, _walk_reads)


def _walk_writes(walk: Walk) -> None:
    """Count the readers of what each access wrote; find the copy that it could write through."""
    regions, effective, out_of_cmx, _, _, _, uses, written_by, writer, reached, *_ = walk.own
    written = Written(written_by, writer)
    with walk.operations() as operation:
        with walk.when(walk.true(out_of_cmx[operation])):
            _see_maker(walk, operation, written, reached)
        with walk.accesses(operation, Access.READ) as access:
            _count_uses(walk, effective[access], uses)
        for kind in (Access.READ, Access.WRITE):
            with (
                walk.accesses(operation, kind) as access,
                walk.neighbours(effective[access]) as (other, _),
            ):
                reached[other] = operation
        with walk.accesses(operation, Access.WRITE) as access:
            walk.note_written(operation, access, regions[access], written)
            _hold_segments(walk, access, regions[access], uses)


def _count_uses(walk: Walk, region: Value, uses: Array) -> None:
    """Count one use of each access whose bytes lie in a region, however many segments of it."""
    *_, begin, end, holder, _ = walk.own
    with walk.when(walk.is_real(region)):
        last = walk.e.variable(I64(NONE))
        last.set(I64(NONE))
        with walk.e.loop(begin[region], end[region]) as segment:
            access = holder[segment]
            with walk.when(walk.is_real(access), walk.b.not_(walk.same(access, last.get()))):
                walk.count_up(uses, access)
            last.set(access)


def _hold_segments(walk: Walk, access: Value, region: Value, uses: Array) -> None:
    """Note whose bytes the segments hold now; with gaps, those before may still be there.

    What is written with gaps counts as used twice: it is made, where it is.
    """
    *_, begin, end, holder, in_one_piece = walk.own
    with walk.when(walk.is_real(region)):
        whole = walk.b.and_(walk.has(access, DENSE), walk.true(in_one_piece[region]))
        with walk.b.if_else(whole) as (filled, gaps):
            with filled, walk.e.loop(begin[region], end[region]) as segment:
                holder[segment] = access
            with gaps:
                uses[access] = I64(2)


def _see_maker(walk: Walk, copy: Value, written: Written, reached: Array) -> None:
    """Note the access that made what a copy reads, if it could have written where that goes."""
    regions, _, _, barred, reads, writes, *_ = walk.own
    source = walk.first[copy]
    region = regions[source]
    with walk.when(walk.is_real(region), walk.same(reads[source], I64(NONE))):
        access = written.access[region]
        with walk.when(walk.is_real(access)):
            maker = walk.owners[access]
            target = regions[walk.b.add(source, I64(1))]
            with walk.when(
                walk.same(regions[access], region),
                walk.b.not_(walk.has(access, Access.READ)),
                walk.same(barred[maker], I64(0)),
                walk.less(reached[target], maker),
            ):
                writes[access] = copy


_WRITES = walk_kernel("forward writes", 14, _walk_writes)
