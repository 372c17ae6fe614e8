"""Copy propagation, which eliminates copies into and out of CMX.

On the device all operands are in CMX, and transfers load and store them. Here CMX is ordinary
memory: a copy into CMX is eliminated if its readers can read its source, and a copy out of CMX if
the producer of its bytes can write its destination. The tasks are a basic block with known
addresses:

- a reader is redirected to the source of a copy if the copy is the reaching write of its operand,
  and neither an operation in between nor the reader itself writes the source;
- a producer is redirected to the destination of a copy if the copy is the only use of its result,
  and no operation in between accesses the destination.

CMX is undefined when a program begins, and dead when it ends (``engines.executor``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driver_layer.abi.platforms import CMX_BASE, TILE_OFFSET_MASK, TILE_SELECT_MASK
from driver_layer.engines.native.jit.emitter import I64, Value
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.arrays import Flags, Ints
from driver_layer.engines.native.lower.dataflow import (
    DENSE,
    NONE,
    AccessGraph,
    Array,
    ReachingWrites,
    Scan,
    flags,
    scan_kernel,
)
from driver_layer.engines.native.lower.redirect import find_redirections
from driver_layer.engines.native.lower.regions import READ_ONLY, Regions, find_segments
from driver_layer.engines.native.lower.template import Access


@dataclass(frozen=True, slots=True, eq=False)
class CopyPropagation:
    """Redirected operands, and eliminated copies.

    Attributes:
        copies: for each access, the copy (an operation) that it is redirected through, or NONE.
        eliminated: True for operations that are not executed.
        regions: region of each access, after redirection.
    """

    copies: Ints
    eliminated: Flags
    regions: Ints


def propagate_copies(
    accesses: Accesses, regions: Regions, graph: AccessGraph, pinned: Flags, kernels: Kernels
) -> CopyPropagation:
    """Redirect operands, and find the copies that this eliminates.

    Args:
        accesses: all operations in order.
        regions: regions of the accesses.
        graph: aliases of the accesses.
        pinned: True for operations whose operands cannot be redirected.
        kernels: kernels of the host.
    """
    into_cmx, out_of_cmx = copies_of_cmx(accesses, pinned)
    numbers = regions.numbers
    reads = np.full(len(numbers), NONE, np.int64)
    graph.run(
        kernels, _READS,
        numbers, flags(into_cmx), flags(pinned), reads,
        graph.per_region(NONE), graph.per_region(NONE), graph.per_region(NONE),
    )  # fmt: skip
    _drop_unmapped(accesses, reads)
    redirected = reads != NONE
    effective = numbers.copy()
    effective[redirected] = numbers[accesses.first[reads[redirected]]]

    writes = np.full(len(numbers), NONE, np.int64)
    uses = np.zeros(len(numbers), np.int64)
    begin, end, segments = find_segments(regions.table, _cmx_regions(accesses, regions))
    graph.run(
        kernels, _WRITES,
        numbers, effective, flags(out_of_cmx), flags(pinned | into_cmx), reads, writes, uses,
        graph.per_region(NONE), graph.per_region(NONE), graph.per_region(NONE),
        begin, end, np.full(segments, NONE, np.int64), flags(regions.table[:, 1] == 1),
    )  # fmt: skip
    writes[uses != 1] = NONE
    _drop_unmapped(accesses, writes)
    sunk = writes != NONE
    effective[sunk] = numbers[accesses.first[writes[sunk]] + 1]
    eliminated = np.zeros_like(into_cmx)
    inward = np.flatnonzero(into_cmx)
    # The second access of a copy is its destination.
    eliminated[inward] = uses[accesses.first[inward] + 1] == 0
    eliminated[writes[sunk]] = True
    return CopyPropagation(np.where(sunk, writes, reads), eliminated, effective)


def copies_of_cmx(accesses: Accesses, pinned: Flags) -> tuple[Flags, Flags]:
    """Flag the operations that copy into CMX, and those that copy from CMX to other memory."""
    copies = np.array([one.is_copy for one in accesses.templates], np.bool_)[accesses.template]
    numbers = np.flatnonzero(copies & ~pinned)
    source, target = (_in_cmx(accesses.addresses[accesses.first[numbers] + i]) for i in (0, 1))
    into, out = np.zeros_like(copies), np.zeros_like(copies)
    into[numbers], out[numbers] = target, source & ~target
    return into, out


def _in_cmx(addresses: Ints) -> Flags:
    return addresses & ~(TILE_SELECT_MASK | TILE_OFFSET_MASK) == CMX_BASE


def _cmx_regions(accesses: Accesses, regions: Regions) -> Flags:
    found = np.zeros(len(regions.table), np.bool_)
    real = regions.numbers != READ_ONLY
    found[regions.numbers[real]] = _in_cmx(accesses.addresses[real])
    return found


def _drop_unmapped(accesses: Accesses, copies: Ints) -> None:
    """Drop redirections to operands that strides cannot describe."""
    for redirection in find_redirections(accesses, copies):
        if redirection.remapped is None:
            copies[redirection.accesses] = NONE


def _scan_reads(scan: Scan) -> None:
    """Find the copy whose source each access could read."""
    regions, _, pinned, _, written_by, writer, own_writes = scan.state
    written = ReachingWrites(written_by, writer)
    with scan.operations() as operation:
        with (
            scan.accesses(operation, Access.WRITE) as access,
            scan.aliases(regions[access]) as (other, _),
        ):
            own_writes[other] = operation
        movable = scan.equal(pinned[operation], I64(0))
        with scan.when(movable), scan.accesses(operation, Access.READ) as access:
            region = regions[access]
            reads_alone = scan.b.not_(scan.has(access, Access.WRITE))
            with scan.when(scan.exists(region), reads_alone):
                _propagate_source(scan, operation, access, written.access[region])
        with scan.accesses(operation, Access.WRITE) as access:
            scan.record_write(operation, access, regions[access], written)


def _propagate_source(scan: Scan, operation: Value, access: Value, writer: Value) -> None:
    """Redirect a read to the source of the copy that wrote its bytes, unless it changed since."""
    regions, into_cmx, _, reads, written_by, _, own_writes = scan.state
    with scan.when(scan.exists(writer)):
        copy = scan.owners[writer]
        with scan.when(scan.is_set(into_cmx[copy])):
            source = regions[scan.first[copy]]
            with scan.b.if_else(scan.exists(source)) as (written, constant):
                with written:
                    since = scan.less(written_by[source], copy)
                    others = scan.b.not_(scan.equal(own_writes[source], operation))
                    with scan.when(since, others):
                        reads[access] = copy
                with constant:
                    reads[access] = copy


_READS = scan_kernel("propagate sources", 7, _scan_reads)


def _scan_writes(scan: Scan) -> None:
    """Count the uses of each write; find copies whose destination a write could store to."""
    regions, effective, out_of_cmx, _, _, _, uses, written_by, writer, last_access, *_ = scan.state
    written = ReachingWrites(written_by, writer)
    with scan.operations() as operation:
        with scan.when(scan.is_set(out_of_cmx[operation])):
            _propagate_destination(scan, operation, written, last_access)
        with scan.accesses(operation, Access.READ) as access:
            _count_uses(scan, effective[access], uses)
        for kind in (Access.READ, Access.WRITE):
            with (
                scan.accesses(operation, kind) as access,
                scan.aliases(effective[access]) as (other, _),
            ):
                last_access[other] = operation
        with scan.accesses(operation, Access.WRITE) as access:
            scan.record_write(operation, access, regions[access], written)
            _define_segments(scan, access, regions[access], uses)


def _count_uses(scan: Scan, region: Value, uses: Array) -> None:
    """Count one use of each write that defines bytes of a region, in any number of segments."""
    *_, begin, end, definition, _ = scan.state
    with scan.when(scan.exists(region)):
        last = scan.e.variable(I64(NONE))
        last.set(I64(NONE))
        with scan.e.loop(begin[region], end[region]) as segment:
            access = definition[segment]
            with scan.when(scan.exists(access), scan.b.not_(scan.equal(access, last.get()))):
                scan.increment(uses, access)
            last.set(access)


def _define_segments(scan: Scan, access: Value, region: Value, uses: Array) -> None:
    """Record the write that defines each segment of a region.

    A write with gaps leaves earlier bytes in place; its use count of 2 prevents redirection.
    """
    *_, begin, end, definition, in_one_piece = scan.state
    with scan.when(scan.exists(region)):
        whole = scan.b.and_(scan.has(access, DENSE), scan.is_set(in_one_piece[region]))
        with scan.b.if_else(whole) as (dense, gaps):
            with dense, scan.e.loop(begin[region], end[region]) as segment:
                definition[segment] = access
            with gaps:
                uses[access] = I64(2)


def _propagate_destination(
    scan: Scan, copy: Value, written: ReachingWrites, last_access: Array
) -> None:
    """Redirect the producer of a copy's source to the copy's destination, if possible."""
    regions, _, _, pinned, reads, writes, *_ = scan.state
    source = scan.first[copy]
    region = regions[source]
    with scan.when(scan.exists(region), scan.equal(reads[source], I64(NONE))):
        access = written.access[region]
        with scan.when(scan.exists(access)):
            producer = scan.owners[access]
            target = regions[scan.b.add(source, I64(1))]
            with scan.when(
                scan.equal(regions[access], region),
                scan.b.not_(scan.has(access, Access.READ)),
                scan.equal(pinned[producer], I64(0)),
                scan.less(last_access[target], producer),
            ):
                writes[access] = copy


_WRITES = scan_kernel("propagate destinations", 14, _scan_writes)
