"""Layout of weights in an arena, and the arena's identity."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

ALIGNMENT = 64
"""Alignment of weights, bytes: a cache line, and the unit of vector loads."""

_FORMAT = 1
"""Version of the layout; changes whenever the same weights may be stored as other bytes."""


@dataclass(frozen=True, slots=True)
class WeightSlot:
    """Location of a weight, bytes."""

    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class ArenaLayout:
    """All weights of an arena, by name, and its size in bytes."""

    slots: Mapping[str, WeightSlot]
    nbytes: int


def plan_layout(sizes: Mapping[str, int]) -> ArenaLayout:
    """Place weights one after the other, in their order.

    Args:
        sizes: bytes of each weight; empty if all weights are used in their files.
    """
    slots: dict[str, WeightSlot] = {}
    end = 0
    for name, nbytes in sizes.items():
        slots[name] = WeightSlot(end, nbytes)
        end += -(-nbytes // ALIGNMENT) * ALIGNMENT
    return ArenaLayout(slots, max(end, ALIGNMENT))


def identify(bank: str, model: str, layout: ArenaLayout) -> str:
    """Name an arena, so that arenas of equal names hold equal bytes at equal offsets.

    Args:
        bank: NPUW_WEIGHTS_BANK; processes share only with others of the same bank.
        model: the digest of the model's files.
        layout: locations of its weights.

    Returns:
        32 hexadecimal digits.
    """
    slots = [[name, slot.offset, slot.nbytes] for name, slot in layout.slots.items()]
    whole = json.dumps([_FORMAT, bank, model, layout.nbytes, slots])
    return hashlib.sha256(whole.encode()).hexdigest()[:32]
