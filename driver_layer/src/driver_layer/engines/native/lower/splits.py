"""Templates, accesses and calls of operations whose operands are split into parts.

Each part has its own slot, so that analyses of operands (redirection, dependences) apply to
parts; the operation stays one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.arrays import Ints
from driver_layer.engines.native.lower.calls import Calls, MadeCalls
from driver_layer.engines.native.lower.template import (
    NO_WORD,
    Axis,
    Slot,
    Split,
    SplitDim,
    Template,
    slot,
)


def split_template(
    templates: Sequence[Template], whole: int, dim: SplitDim, bounds: tuple[int, ...]
) -> Template:
    """Split the operands of a template.

    Args:
        templates: all templates.
        whole: number of the template to split.
        dim: dimension along which operands are split.
        bounds: begins of parts, and the total size.
    """
    template = templates[whole]
    width, count = len(template.words), len(bounds) - 1
    words = np.tile(np.array(template.words, np.int64), (count, 1))
    words[:, dim.size] = np.diff(bounds)
    if dim.count != NO_WORD:
        words[:, dim.count] = count
    axes = {axis.slot: axis for axis in dim.axes}
    slots: list[Slot] = []
    origins: list[tuple[int, int]] = []
    for number, one in enumerate(template.slots):
        if number not in axes:
            slots.append(one)
            origins.append((number, 0))
            continue
        for part, span in enumerate(pairwise(bounds)):
            piece, offset = _piece(one, axes[number], span, part * width)
            slots.append(piece)
            origins.append((number, offset))
    return replace(
        template,
        words=tuple(words.reshape(-1).tolist()),
        slots=tuple(slots),
        parallel_dims=(),
        packing_key=(),
        split_dims=(),
        reduction=None,
        split=Split(whole, dim, bounds, tuple(origins)),
    )


def _piece(whole: Slot, axis: Axis, span: tuple[int, int], words: int) -> tuple[Slot, int]:
    """Return a part, whose words follow the whole's by ``words``, and its byte offset."""
    begin, end = span[0] // axis.step, -(-span[1] // axis.step)
    dims = [
        dim._replace(
            length=end - begin if number == axis.dim else dim.length,
            word=dim.word if dim.word == NO_WORD else dim.word + words,
        )
        for number, dim in enumerate(whole.dims)
    ]
    offset = begin * whole.dims[axis.dim].stride
    piece = slot(whole.word + words, whole.access, dims, whole.element, whole.offset + offset)
    return piece, offset


def split_accesses(
    accesses: Accesses, templates: Sequence[Template], template: Ints
) -> tuple[Accesses, Ints]:
    """Split the accesses of operations whose templates were split.

    Args:
        accesses: all operations.
        templates: the templates of ``accesses``, followed by the split ones.
        template: number of each operation's new template.

    Returns:
        The operations, and for each of their accesses the former access that contains it.
    """
    counts = np.array([len(one.slots) for one in templates], np.int64)[template]
    first: Ints = np.concatenate([[0], np.cumsum(counts)])
    owners = np.repeat(np.arange(len(template)), counts)
    changed = template != accesses.template
    # Other operations keep their number of accesses.
    number = np.where(changed[owners], 0, np.arange(len(owners)) - first[owners])
    origin = accesses.first[owners] + number
    offset = np.zeros_like(origin)
    shapes, dense = accesses.shapes[origin], accesses.dense[origin]
    used: list[int] = np.unique(template[changed]).tolist()
    for new in used:
        slots, split = templates[new].slots, templates[new].split
        assert split is not None
        members = np.flatnonzero(template == new)
        places = first[members, None] + np.arange(len(slots))
        slot_of, begin = np.array(split.origins, np.int64).T
        origin[places] = accesses.first[members, None] + slot_of
        offset[places] = begin
        shapes[places] = [one.region for one in slots]
        dense[places] = [one.dense for one in slots]
    found = Accesses(
        templates,
        template,
        accesses.step,
        first,
        accesses.addresses[origin] + offset,
        accesses.hosts[origin] + offset,
        shapes,
        accesses.kinds[origin],
        dense,
    )
    return found, origin


def split_calls(calls: Calls) -> Calls:
    """Split calls into one for each part, unless the kernel accepts several parts."""
    template = calls.template.copy()
    gone: list[Ints] = []
    made: list[MadeCalls] = []
    for number, one in enumerate(calls.templates):
        split = one.split
        if split is not None and split.dim.count == NO_WORD:
            members = np.flatnonzero(calls.template == number)
            template[members] = split.whole
            gone.append(members)
            made.append(_part_calls(calls, members, calls.templates[split.whole], split))
    return replace(calls, template=template).replaced(gone, made)


def _part_calls(calls: Calls, members: Ints, whole: Template, split: Split) -> MadeCalls:
    """Return calls of the unsplit template for each part of some calls."""
    bounds = np.array(split.bounds, np.int64)
    sizes, count, width = np.diff(bounds), len(bounds) - 1, len(whole.words)
    blocks = calls.words(members, count * width).reshape(-1, count, width)
    own = _own_words(whole, split.dim)
    words = np.repeat(blocks[:, :1], count, axis=1)
    words[:, :, own] = blocks[:, :, own]
    words[:, :, split.dim.size] = sizes
    for pointer, stride in split.dim.pointers:
        words[:, :, pointer] += bounds[:-1] * words[:, :, stride]
    costs = calls.cost[members, None] * sizes // bounds[-1]
    return np.repeat(members, count), words.reshape(-1, width), costs.reshape(-1)


def _own_words(whole: Template, dim: SplitDim) -> list[int]:
    """Return the arguments that differ from part to part: addresses and strides of operands."""
    slots = [whole.slots[axis.slot] for axis in dim.axes]
    strides = [own.word for one in slots for own in one.dims if own.word != NO_WORD]
    return [one.word for one in slots] + strides
