"""Where each weight lies in the arena, and what tells one arena from all others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

ALIGNMENT = 64
"""Weights begin at multiples of it: a line of the cache, and what vectors are loaded by."""

_FORMAT = 1
"""Changes whenever the same weights may be stored as other bytes."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A weight's place, bytes."""

    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Layout:
    """All weights of an arena, by name, and its size in bytes."""

    slots: Mapping[str, Slot]
    nbytes: int


def plan_layout(sizes: Mapping[str, int]) -> Layout:
    """Lay weights side by side, in their order.

    Args:
        sizes: bytes of each weight. There may be none, if all are used where their files are.
    """
    slots: dict[str, Slot] = {}
    end = 0
    for name, nbytes in sizes.items():
        slots[name] = Slot(end, nbytes)
        end += -(-nbytes // ALIGNMENT) * ALIGNMENT
    return Layout(slots, max(end, ALIGNMENT))


def identify(bank: str, model: str, layout: Layout) -> str:
    """Name an arena, so that two with one name hold the same bytes at the same places.

    Args:
        bank: NPUW_WEIGHTS_BANK; those who name another share with others.
        model: the digest of the model's files.
        layout: where its weights lie.

    Returns:
        32 hexadecimal digits.
    """
    slots = [[name, slot.offset, slot.nbytes] for name, slot in layout.slots.items()]
    whole = json.dumps([_FORMAT, bank, model, layout.nbytes, slots])
    return hashlib.sha256(whole.encode()).hexdigest()[:32]
