"""Splitting of operands that several copies wrote, at the boundaries of the copies.

One copy brings a KV cache into CMX, another the rows of a new token, and attention reads both as
one operand. After splitting, each part can be redirected to its own source.
"""

from __future__ import annotations

import numpy as np

from driver_layer.engines.native.jit.emitter import I64, Value
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.arrays import Flags, Ints, equal_rows
from driver_layer.engines.native.lower.copy_propagation import copies_of_cmx
from driver_layer.engines.native.lower.dataflow import NONE, AccessGraph, Array, Scan, scan_kernel
from driver_layer.engines.native.lower.regions import Regions, renumber_regions
from driver_layer.engines.native.lower.split_points import Write, choose_split
from driver_layer.engines.native.lower.splits import split_accesses, split_template
from driver_layer.engines.native.lower.template import Access

_MOST_WRITES = 4
"""Number of reaching writes that are considered for an operand, the newest."""


def split_operands(
    accesses: Accesses, regions: Regions, graph: AccessGraph, pinned: Flags, kernels: Kernels
) -> tuple[Accesses, Regions]:
    """Split operands that several copies wrote.

    Args:
        accesses: all operations in order.
        regions: regions of the accesses.
        graph: aliases of the accesses.
        pinned: True for operations whose operands cannot be redirected.
        kernels: kernels of the host.

    Returns:
        The operations, with an access for each part of a split operand, and the accesses' regions.
    """
    into_cmx, _ = copies_of_cmx(accesses, pinned)
    reads = np.flatnonzero(_splittable(accesses) & ~pinned[accesses.owners])
    writes = _writes(accesses, reads, _reaching_writes(regions, graph, reads, kernels), into_cmx)
    owners = accesses.owners[reads]
    operations = np.unique(owners[_written_in_parts(writes)])
    if not len(operations):
        return accesses, regions
    keys, first, group = _group_by_writes(accesses, operations, reads, writes)
    templates, numbers = list(accesses.templates), accesses.template[operations[first]]
    wholes: list[int] = numbers.tolist()
    for index, whole in enumerate(wholes):
        chosen = choose_split(templates[whole], _by_slot(keys[first[index]]))
        if chosen is not None:
            numbers[index] = len(templates)
            templates.append(split_template(templates, whole, *chosen))
    template = accesses.template.copy()
    template[operations] = numbers[group]
    found, origin = split_accesses(accesses, templates, template)
    split = np.flatnonzero((template != accesses.template)[found.owners])
    return found, renumber_regions(regions, origin, split, found.hosts[split], found.shapes[split])


def _splittable(accesses: Accesses) -> Flags:
    """Return True for each access to an operand that has a split dimension."""
    most = int(np.diff(accesses.first).max(initial=0))
    named = np.zeros((len(accesses.templates), most), np.bool_)
    for number, template in enumerate(accesses.templates):
        for dim in template.split_dims:
            named[number, [axis.slot for axis in dim.axes]] = True
    owners = accesses.owners
    return named[accesses.template[owners], np.arange(len(owners)) - accesses.first[owners]]


def _reaching_writes(regions: Regions, graph: AccessGraph, reads: Ints, kernels: Kernels) -> Ints:
    """Return the writes that reach some reads, the newest first, [reads, _MOST_WRITES].

    Of several writes to one region, only the last reaches. Entries are accesses or NONE.
    """
    found = np.full((len(reads), _MOST_WRITES), NONE, np.int64)
    rows = np.full(len(regions.numbers), NONE, np.int64)
    rows[reads] = np.arange(len(reads)) * _MOST_WRITES
    graph.run(kernels, _REACHING, regions.numbers, rows, found, graph.per_region(NONE))
    return found


def _scan_reaching(scan: Scan) -> None:
    regions, rows, found, written = scan.state
    with scan.operations() as operation:
        with scan.accesses(operation, Access.READ) as access:
            row = rows[access]
            with (
                scan.when(scan.exists(row)),
                scan.aliases(regions[access]) as (other, _),
            ):
                _insert(scan, found, row, written[other])
        with scan.accesses(operation, Access.WRITE) as access:
            region = regions[access]
            with scan.when(scan.exists(region)):
                written[region] = access


def _insert(scan: Scan, found: Array, row: Value, writer: Value) -> None:
    """Insert a write into the row of a read, in descending order, so that the newest is first."""
    for number in range(_MOST_WRITES):
        place = scan.b.add(row, I64(number))
        held = found[place]
        found[place] = scan.maximum(held, writer)
        writer = scan.b.select(scan.less(held, writer), held, writer)


_REACHING = scan_kernel("reaching writes", 4, _scan_reaching)


def _writes(accesses: Accesses, reads: Ints, writers: Ints, into_cmx: Flags) -> Ints:
    """Return reaching writes as fields of ``Write``, [reads, _MOST_WRITES, fields].

    Fields are 0 if there is no write, and after a write that covers the complete operand.
    """
    begins, shapes = (
        accesses.hosts[writers] - accesses.hosts[reads, None],
        accesses.shapes[writers],
    )
    by_copy = into_cmx[accesses.owners[writers]].astype(np.int64)
    writes = np.concatenate([begins[..., None], shapes, by_copy[..., None]], axis=2)
    writes[writers == NONE] = 0
    own = accesses.shapes[reads, None]
    extent = (own[..., 0] - 1) * own[..., 1] + own[..., 2]
    same = (begins == 0) & (shapes == own).all(axis=2)
    around = (shapes[..., 0] == 1) & (begins <= 0) & (begins + shapes[..., 2] >= extent)
    covers = (same | around) & (writers != NONE)
    writes[np.cumsum(covers, axis=1) > covers] = 0
    return writes


def _written_in_parts(writes: Ints) -> Flags:
    """Return True for each operand with several reaching writes that include a copy."""
    several = writes[:, 1, Write._fields.index("width")] > 0
    return several & (writes[..., Write._fields.index("by_copy")] > 0).any(axis=1)


def _group_by_writes(
    accesses: Accesses, operations: Ints, reads: Ints, writes: Ints
) -> tuple[Ints, Ints, Ints]:
    """Group operations whose operands have equal writes.

    Returns the writes of each operation by slot, [operations, slots, _MOST_WRITES, fields]; the
    first operation of each group; and the group of each operation.
    """
    owners = accesses.owners[reads]
    here = np.isin(owners, operations)
    slots = reads - accesses.first[owners]
    by_slot = np.zeros((len(operations), int(slots[here].max()) + 1, *writes.shape[1:]), np.int64)
    by_slot[np.searchsorted(operations, owners[here]), slots[here]] = writes[here]
    flat = by_slot.reshape(len(operations), -1)
    keys = np.concatenate([accesses.template[operations, None], flat], axis=1)
    return by_slot, *equal_rows(keys)


def _by_slot(writes: Ints) -> dict[int, list[Write]]:
    """Convert the writes of an operation, [slots, _MOST_WRITES, fields], to objects."""
    found: dict[int, list[Write]] = {}
    for slot, rows in enumerate(writes.tolist()):
        found[slot] = [Write(*row[:-1], by_copy=bool(row[-1])) for row in rows if row[-2]]
    return found
