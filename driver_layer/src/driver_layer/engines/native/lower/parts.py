"""Operations whose operands lie in several parts: their templates, accesses and calls.

Each part is a slot of its own, so that whatever is decided on operands (where they are read, what
they must wait for) is decided on parts; the operation stays one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from driver_layer.engines.native.lower.accesses import Accesses
from driver_layer.engines.native.lower.calls import Calls
from driver_layer.engines.native.lower.groups import Ints
from driver_layer.engines.native.lower.template import (
    NO_WORD,
    Axis,
    Cut,
    Parts,
    Slot,
    Template,
    slot,
)


def in_parts(
    templates: Sequence[Template], whole: int, cut: Cut, borders: tuple[int, ...]
) -> Template:
    """Make the template of an operation whose operands lie in parts.

    Args:
        templates: all there are.
        whole: the number of the operation's.
        cut: the dimension.
        borders: where parts begin, and the whole size.
    """
    template = templates[whole]
    width, count = len(template.words), len(borders) - 1
    words = np.tile(np.array(template.words, np.int64), (count, 1))
    words[:, cut.size] = np.diff(borders)
    if cut.count != NO_WORD:
        words[:, cut.count] = count
    axes = {axis.slot: axis for axis in cut.axes}
    slots: list[Slot] = []
    origins: list[tuple[int, int]] = []
    for number, one in enumerate(template.slots):
        if number not in axes:
            slots.append(one)
            origins.append((number, 0))
            continue
        for part, span in enumerate(pairwise(borders)):
            piece, offset = _piece(one, axes[number], span, part * width)
            slots.append(piece)
            origins.append((number, offset))
    return replace(
        template,
        words=tuple(words.reshape(-1).tolist()),
        slots=tuple(slots),
        growths=(),
        kept=(),
        cuts=(),
        depth=None,
        parts=Parts(whole, cut, borders, tuple(origins)),
    )


def _piece(whole: Slot, axis: Axis, span: tuple[int, int], words: int) -> tuple[Slot, int]:
    """A part of an operand whose words are that far behind, and bytes from the whole's begin."""
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


def with_parts(
    accesses: Accesses, templates: Sequence[Template], template: Ints
) -> tuple[Accesses, Ints]:
    """Give operations other templates, which are those that they have, in parts.

    Args:
        accesses: all operations.
        templates: those there are, and then the new ones.
        template: the number of each operation's.

    Returns:
        The same operations, and for each of their accesses the one that it is, or is a part of.
    """
    counts = np.array([len(one.slots) for one in templates], np.int64)[template]
    first: Ints = np.concatenate([[0], np.cumsum(counts)])
    owners = np.repeat(np.arange(len(template)), counts)
    changed = template != accesses.template
    # The others have as many accesses as before.
    number = np.where(changed[owners], 0, np.arange(len(owners)) - first[owners])
    origin = accesses.first[owners] + number
    offset = np.zeros_like(origin)
    shapes, dense = accesses.shapes[origin], accesses.dense[origin]
    used: list[int] = np.unique(template[changed]).tolist()
    for new in used:
        slots, parts = templates[new].slots, templates[new].parts
        assert parts is not None
        members = np.flatnonzero(template == new)
        places = first[members, None] + np.arange(len(slots))
        slot_of, moved = np.array(parts.origins, np.int64).T
        origin[places] = accesses.first[members, None] + slot_of
        offset[places] = moved
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


def separate(calls: Calls) -> Calls:
    """Make a call for each part, where a kernel does not take them all."""
    template, several = calls.template.copy(), np.zeros(len(calls), np.bool_)
    found: dict[int, list[_Separated]] = {}
    for number, one in enumerate(calls.templates):
        parts = one.parts
        if parts is not None and parts.cut.count == NO_WORD:
            members = np.flatnonzero(calls.template == number)
            template[members], several[members] = parts.whole, True
            whole = calls.templates[parts.whole]
            made = found.setdefault(len(whole.words), [])
            made.append(_separated(calls, members, whole, parts))
    calls = replace(calls, template=template)
    for made in found.values():
        members, words, costs = (np.concatenate(columns) for columns in zip(*made, strict=True))
        calls = calls.append(members, words, costs)
    return calls.take(np.append(~several, np.ones(len(calls) - len(several), np.bool_)))


_Separated = tuple[Ints, Ints, Ints]
"""For each call that is made: the one that it is a part of, its arguments, and its cost."""


def _separated(calls: Calls, members: Ints, whole: Template, parts: Parts) -> _Separated:
    """Make calls of the whole template of some that are in parts."""
    borders = np.array(parts.borders, np.int64)
    sizes, count, width = np.diff(borders), len(borders) - 1, len(whole.words)
    blocks = calls.words(members, count * width).reshape(-1, count, width)
    own = _own_words(whole, parts.cut)
    words = np.repeat(blocks[:, :1], count, axis=1)
    words[:, :, own] = blocks[:, :, own]
    words[:, :, parts.cut.size] = sizes
    for pointer, stride in parts.cut.moved:
        words[:, :, pointer] += borders[:-1] * words[:, :, stride]
    costs = calls.cost[members, None] * sizes // borders[-1]
    return np.repeat(members, count), words.reshape(-1, width), costs.reshape(-1)


def _own_words(whole: Template, cut: Cut) -> list[int]:
    """The arguments that differ from part to part: where operands are, and their strides."""
    cut_slots = [whole.slots[axis.slot] for axis in cut.axes]
    strides = [dim.word for one in cut_slots for dim in one.dims if dim.word != NO_WORD]
    return [one.word for one in cut_slots] + strides
