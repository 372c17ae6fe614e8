"""All operations of a program in order, with the bytes that they access."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driver_layer.engines.native.lower.address_map import AddressMap
from driver_layer.engines.native.lower.arrays import Flags, Ints
from driver_layer.engines.native.lower.template import Access, Group, Template


@dataclass(frozen=True, slots=True, eq=False)
class Accesses:
    """Operations and their memory accesses, one for each slot.

    Attributes:
        templates: the distinct templates.
        template: number of each operation's template, [operations].
        step: step of the order that each operation belongs to, ascending.
        first: the accesses of operation i are ``first[i]`` to ``first[i + 1]``.
        addresses: device address where each operand's region begins, [accesses].
        hosts: host address of the same byte.
        shapes: rows, pitch and width of the regions, [accesses, 3].
        kinds: values of ``Access``.
        dense: True for each access without gaps in its region.
    """

    templates: Sequence[Template]
    template: Ints
    step: Ints
    first: Ints
    addresses: Ints
    hosts: Ints
    shapes: Ints
    kinds: npt.NDArray[np.int8]
    dense: Flags

    def __len__(self) -> int:
        return len(self.template)

    @property
    def owners(self) -> Ints:
        """Operation of each access."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    @property
    def writes(self) -> Flags:
        """True for each access that writes."""
        return (self.kinds & Access.WRITE) != 0


class BadAccess(Exception):
    """An operation accesses unmapped memory.

    Args:
        step: step of the order that the operation belongs to.
    """

    def __init__(self, step: int) -> None:
        self.step = step
        super().__init__(f"step {step}")


def collect_accesses(groups: Sequence[tuple[Group, Ints]], addresses: AddressMap) -> Accesses:
    """Sort the operations of all queues by step, and translate their addresses.

    Args:
        groups: operations, and the steps of their queue's tasks.
        addresses: translation of device addresses.

    Raises:
        BadAccess: an operation accesses unmapped memory.
    """
    templates, numbers = _unique([group.template for group, _ in groups])
    counts = [len(group.tasks) for group, _ in groups]
    template = np.repeat(numbers, counts)
    step = np.concatenate([steps[group.tasks] for group, steps in groups])
    order = np.argsort(step, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    slots = np.array([len(one.slots) for one in templates], np.int64)
    template, step = template[order], step[order]
    first = np.concatenate([[0], np.cumsum(slots[template])])
    total = int(first[-1])
    at = np.zeros(total, np.int64)
    shapes = np.zeros((total, 3), np.int64)
    kinds = np.zeros(total, np.int8)
    dense = np.zeros(total, np.bool_)
    begin = 0
    for (group, _), count in zip(groups, counts, strict=True):
        places = first[place[begin : begin + count]]
        for number, slot in enumerate(group.template.slots):
            here = places + number
            at[here] = group.addresses[:, number] + slot.offset
            shapes[here] = slot.region
            kinds[here] = slot.access
            dense[here] = slot.dense
        begin += count
    extents = (shapes[:, 0] - 1) * shapes[:, 1] + shapes[:, 2]
    hosts, valid = addresses.translate(at, extents, (kinds & Access.WRITE) != 0)
    if not valid.all():
        operation = int(np.searchsorted(first, int(valid.argmin()), side="right")) - 1
        raise BadAccess(int(step[operation]))
    return Accesses(templates, template, step, first, at, hosts, shapes, kinds, dense)


def _unique(templates: Sequence[Template]) -> tuple[list[Template], list[int]]:
    """Remove duplicate templates; return the distinct ones, and the number of each given one."""
    known: dict[object, int] = {}
    found: list[Template] = []
    numbers: list[int] = []
    for template in templates:
        name = template.spec.key if template.spec else None
        key = (name, template.words, template.slots)
        if key not in known:
            known[key] = len(found)
            found.append(template)
        numbers.append(known[key])
    return found, numbers
