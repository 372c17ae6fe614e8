"""Operands that go through copies, all at once: most of them go the same way as others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.groups import Ints, equal_rows
from driver_layer.engines.native.lower.template import Access, Slot
from driver_layer.engines.native.lower.through import Moved, through
from driver_layer.engines.native.lower.walk import NONE


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """Accesses that lie at the same place of equal copies.

    Attributes:
        accesses: their numbers.
        operand: what all of them are.
        moved: where it is on the other side of the copy; None if it has no strides there.
        far: the accesses of the copies on that other side.
    """

    accesses: Ints
    operand: Slot
    moved: Moved | None
    far: Ints


def find_ways(accesses: Accesses, copies: Ints) -> list[Way]:
    """Find where operands lie on the other side of copies.

    Args:
        accesses: all operations.
        copies: for each access, the operation (a copy) through which it goes, or NONE.
    """
    going = np.flatnonzero(copies != NONE)
    if not len(going):
        return []
    operations, through_copy = accesses.owners[going], copies[going]
    # A reader lies in the copy's destination, its second access; a writer in its source.
    near_side = (accesses.kinds[going] == Access.READ).astype(np.int64)
    ends = accesses.first[through_copy]
    offsets = accesses.hosts[going] - accesses.hosts[ends + near_side]
    keys = np.stack(
        [
            accesses.template[operations],
            going - accesses.first[operations],
            accesses.template[through_copy],
            offsets,
        ],
        axis=1,
    )
    first, group_of = equal_rows(keys)
    order = np.argsort(group_of, kind="stable")
    members = np.split(order, np.searchsorted(group_of[order], np.arange(1, len(first))))
    ways: list[Way] = []
    for chosen, at in zip(members, first.tolist(), strict=True):
        template, slot, copy, offset = (int(part) for part in keys[at])
        operand, sides = accesses.templates[template].slots[slot], accesses.templates[copy].slots
        near = 1 if operand.access is Access.READ else 0
        moved = through(operand, offset, sides[near], sides[1 - near])
        ways.append(Way(going[chosen], operand, moved, ends[chosen] + 1 - near))
    return ways
