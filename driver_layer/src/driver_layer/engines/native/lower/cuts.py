"""Cuts operands where the copies that wrote them meet.

A KV cache and the rows of a new token are brought together in CMX by a copy each, and attention
reads them as one operand. Cut where the copies meet, each part can be read where it came from.
"""

from __future__ import annotations

import numpy as np

from driver_layer.engines.native.jit.emitter import I64, Value
from driver_layer.engines.native.jit.kernels import Kernels
from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.addresses import Flags
from driver_layer.engines.native.lower.borders import Write, find_cut
from driver_layer.engines.native.lower.forward import copies_of_cmx
from driver_layer.engines.native.lower.groups import Ints, equal_rows
from driver_layer.engines.native.lower.parts import in_parts, with_parts
from driver_layer.engines.native.lower.regions import Regions, renumber_regions
from driver_layer.engines.native.lower.template import Access
from driver_layer.engines.native.lower.walk import NONE, Array, Ground, Walk, walk_kernel

_WRITERS = 4
"""How many of the newest writers of an operand are looked at."""


def cut_operands(
    accesses: Accesses, regions: Regions, ground: Ground, pinned: Flags, kernels: Kernels
) -> tuple[Accesses, Regions]:
    """Cut operands that several copies wrote.

    Args:
        accesses: all operations in their order.
        regions: of the accesses.
        ground: the same, to walk over.
        pinned: the operations whose operands cannot be moved.
        kernels: of the host.

    Returns:
        The same operations, where those that are cut have an access for each part; the regions of
        these accesses.
    """
    into_cmx, _ = copies_of_cmx(accesses, pinned)
    wanted = np.flatnonzero(_cuttable(accesses) & ~pinned[accesses.owners])
    writes = _writes(accesses, wanted, _newest_writers(regions, ground, wanted, kernels), into_cmx)
    owners = accesses.owners[wanted]
    operations = np.unique(owners[_written_in_parts(writes)])
    if not len(operations):
        return accesses, regions
    keys, first, group = _alike(accesses, operations, wanted, writes)
    templates, numbers = list(accesses.templates), accesses.template[operations[first]]
    wholes: list[int] = numbers.tolist()
    for index, whole in enumerate(wholes):
        chosen = find_cut(templates[whole], _by_slot(keys[first[index]]))
        if chosen is not None:
            numbers[index] = len(templates)
            templates.append(in_parts(templates, whole, *chosen))
    template = accesses.template.copy()
    template[operations] = numbers[group]
    found, origin = with_parts(accesses, templates, template)
    cut = np.flatnonzero((template != accesses.template)[found.owners])
    return found, renumber_regions(regions, origin, cut, found.hosts[cut], found.shapes[cut])


def _cuttable(accesses: Accesses) -> Flags:
    """Which accesses are to operands that have the dimension of a cut."""
    most = int(np.diff(accesses.first).max(initial=0))
    named = np.zeros((len(accesses.templates), most), np.bool_)
    for number, template in enumerate(accesses.templates):
        for cut in template.cuts:
            named[number, [axis.slot for axis in cut.axes]] = True
    owners = accesses.owners
    return named[accesses.template[owners], np.arange(len(owners)) - accesses.first[owners]]


def _newest_writers(regions: Regions, ground: Ground, wanted: Ints, kernels: Kernels) -> Ints:
    """Give the accesses that were the last to write any of some others, the newest first.

    Of several writes to one region only the last is seen. Returns [wanted, _WRITERS] of accesses,
    or NONE.
    """
    found = np.full((len(wanted), _WRITERS), NONE, np.int64)
    rows = np.full(len(regions.numbers), NONE, np.int64)
    rows[wanted] = np.arange(len(wanted)) * _WRITERS
    ground.walk(kernels, _NEWEST, regions.numbers, rows, found, ground.regions(NONE))
    return found


def _walk_newest(walk: Walk) -> None:
    regions, rows, found, written = walk.own
    with walk.operations() as operation:
        with walk.accesses(operation, Access.READ) as access:
            row = rows[access]
            with (
                walk.when(walk.is_real(row)),
                walk.neighbours(regions[access]) as (other, _),
            ):
                _insert(walk, found, row, written[other])
        with walk.accesses(operation, Access.WRITE) as access:
            region = regions[access]
            with walk.when(walk.is_real(region)):
                written[region] = access


def _insert(walk: Walk, found: Array, row: Value, writer: Value) -> None:
    """Put an access in its place among the highest numbers, which are the newest writers."""
    for number in range(_WRITERS):
        place = walk.b.add(row, I64(number))
        held = found[place]
        found[place] = walk.larger(held, writer)
        writer = walk.b.select(walk.less(held, writer), held, writer)


_NEWEST = walk_kernel("newest writers", 4, _walk_newest)


def _writes(accesses: Accesses, wanted: Ints, writers: Ints, into_cmx: Flags) -> Ints:
    """Give the fields of ``Write`` for writers, [wanted, _WRITERS, fields].

    They are 0 where there is none, and behind one that wrote all of the operand.
    """
    begins, shapes = (
        accesses.hosts[writers] - accesses.hosts[wanted, None],
        accesses.shapes[writers],
    )
    by_copy = into_cmx[accesses.owners[writers]].astype(np.int64)
    writes = np.concatenate([begins[..., None], shapes, by_copy[..., None]], axis=2)
    writes[writers == NONE] = 0
    own = accesses.shapes[wanted, None]
    extent = (own[..., 0] - 1) * own[..., 1] + own[..., 2]
    same = (begins == 0) & (shapes == own).all(axis=2)
    around = (shapes[..., 0] == 1) & (begins <= 0) & (begins + shapes[..., 2] >= extent)
    covers = (same | around) & (writers != NONE)
    writes[np.cumsum(covers, axis=1) > covers] = 0
    return writes


def _written_in_parts(writes: Ints) -> Flags:
    """Which operands have several writers, a copy among them."""
    several = writes[:, 1, Write._fields.index("width")] > 0
    return several & (writes[..., Write._fields.index("by_copy")] > 0).any(axis=1)


def _alike(
    accesses: Accesses, operations: Ints, wanted: Ints, writes: Ints
) -> tuple[Ints, Ints, Ints]:
    """Group operations whose operands were written in the same way.

    Returns the writes of each operation by slot, [operations, slots, _WRITERS, fields]; the first
    operation of each group, and the group of each operation.
    """
    owners = accesses.owners[wanted]
    here = np.isin(owners, operations)
    slots = wanted - accesses.first[owners]
    by_slot = np.zeros((len(operations), int(slots[here].max()) + 1, *writes.shape[1:]), np.int64)
    by_slot[np.searchsorted(operations, owners[here]), slots[here]] = writes[here]
    flat = by_slot.reshape(len(operations), -1)
    keys = np.concatenate([accesses.template[operations, None], flat], axis=1)
    return by_slot, *equal_rows(keys)


def _by_slot(writes: Ints) -> dict[int, list[Write]]:
    """The writes of an operation, [slots, _WRITERS, fields], as objects."""
    found: dict[int, list[Write]] = {}
    for slot, rows in enumerate(writes.tolist()):
        found[slot] = [Write(*row[:-1], by_copy=bool(row[-1])) for row in rows if row[-2]]
    return found
