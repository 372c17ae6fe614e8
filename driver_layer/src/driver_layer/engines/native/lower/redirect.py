"""Redirection of operands from one side of a copy to the other.

Many redirections are equal, so operands are grouped first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.arrays import Ints, equal_rows
from driver_layer.engines.native.lower.dataflow import NONE
from driver_layer.engines.native.lower.template import NO_WORD, Access, Dim, Slot, extent


class Remapped(NamedTuple):
    """An operand on the other side of a copy."""

    offset: int
    """Bytes from the begin of that side to the operand."""
    strides: tuple[tuple[int, int], ...]
    """Changed arguments of the kernel, and their new values."""


@dataclass(frozen=True, slots=True, eq=False)
class Redirection:
    """Accesses at equal positions of equal copies.

    Attributes:
        accesses: numbers of the accesses.
        operand: slot of all of them.
        remapped: operand on the other side of the copy; None if strides cannot describe it.
        far: accesses of the copies on the other side.
    """

    accesses: Ints
    operand: Slot
    remapped: Remapped | None
    far: Ints


def find_redirections(accesses: Accesses, copies: Ints) -> list[Redirection]:
    """Group operands by the copies that they are redirected through, and remap them.

    Args:
        accesses: all operations.
        copies: for each access, the copy (an operation) that it is redirected through, or NONE.
    """
    redirected = np.flatnonzero(copies != NONE)
    if not len(redirected):
        return []
    operations, copy_of = accesses.owners[redirected], copies[redirected]
    # A reader's operand is in the copy's destination, its second access; a writer's in its source.
    near_side = (accesses.kinds[redirected] == Access.READ).astype(np.int64)
    ends = accesses.first[copy_of]
    offsets = accesses.hosts[redirected] - accesses.hosts[ends + near_side]
    keys = np.stack(
        [
            accesses.template[operations],
            redirected - accesses.first[operations],
            accesses.template[copy_of],
            offsets,
        ],
        axis=1,
    )
    first, group_of = equal_rows(keys)
    order = np.argsort(group_of, kind="stable")
    members = np.split(order, np.searchsorted(group_of[order], np.arange(1, len(first))))
    redirections: list[Redirection] = []
    for chosen, at in zip(members, first.tolist(), strict=True):
        template, slot, copy, offset = (int(part) for part in keys[at])
        operand, sides = accesses.templates[template].slots[slot], accesses.templates[copy].slots
        near = 1 if operand.access is Access.READ else 0
        remapped = remap_operand(operand, offset, sides[near], sides[1 - near])
        redirections.append(
            Redirection(redirected[chosen], operand, remapped, ends[chosen] + 1 - near)
        )
    return redirections


@lru_cache(maxsize=1 << 14)
def remap_operand(operand: Slot, offset: int, near: Slot, far: Slot) -> Remapped | None:
    """Remap an operand from one side of a copy to the other.

    Dimensions of the operand that step over complete rows of the copy step over rows of the other
    side; its other dimensions must stay within a row.

    Args:
        operand: operand on the near side.
        offset: bytes from the near side's begin to the operand.
        near: side that contains the operand, which stays within this side's region. If the side has
            gaps, none of the operand's strides enters them.
        far: the other side, with the same dimensions and other strides.

    Returns:
        The operand on the far side; None if strides cannot describe it.
    """
    if operand.word == NO_WORD:
        return None
    near_dims, far_dims = near.dims, far.dims
    # A side that repeats bytes has fewer dimensions, as those of stride 0 are left out.
    if len(near_dims) != len(far_dims) or not _is_monotonic(near_dims, near.element):
        return None
    rest, begin, strides = operand.dims, 0, dict[int, int]()
    for (_, near_stride, _), (_, far_stride, _) in zip(near_dims, far_dims, strict=True):
        here = [dim for dim in rest if dim.stride % near_stride == 0]
        rest = tuple(dim for dim in rest if dim.stride % near_stride)
        begin += offset // near_stride * far_stride
        offset %= near_stride
        if offset + extent(rest, operand.element) > near_stride:
            return None
        for dim in here:
            stride = dim.stride // near_stride * far_stride
            if stride == dim.stride:
                continue
            if dim.word == NO_WORD:
                return None
            strides[dim.word] = stride
    if near_dims and offset + extent(rest, operand.element) > near.element:
        return None
    return Remapped(begin + offset, tuple(strides.items()))


def _is_monotonic(dims: Sequence[Dim], element: int) -> bool:
    """Return whether the addresses of a side only ascend."""
    size = element
    for dim in reversed(dims):
        if dim.stride < size:
            return False
        size = dim.stride * dim.length
    return True
