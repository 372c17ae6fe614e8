"""Use of a budget of device memory: integer arithmetic only.

Some layers keep their own slot; their weights are copied once. The others share a ring of
``reserved + 1`` slots: while one computes, the weights of the next ``reserved`` of them are present
or being copied. A ring of two copies least, as every other slot of the budget saves a copy; larger
rings copy further ahead. Layers with copied weights are spread evenly, so that each copy has the
longest time.

A layer always has the same slot, so its bindings never change. If the number of these layers is not
a multiple of the ring's slots, fewer are ahead between the last layer and the first. There, copies
overlap with the LM head, the embeddings and the host's choice of a token.
"""

from __future__ import annotations

from dataclasses import dataclass

from npuw_layer.errors import OptionError


@dataclass(frozen=True, slots=True)
class OffloadPlan:
    """Assignment of slots to layers.

    Attributes:
        slot_of: the slot of each layer.
        next_in_slot: for each layer the next one in its slot, possibly in the next pass; its own
            number if it keeps the slot.
    """

    slot_of: tuple[int, ...]
    next_in_slot: tuple[int, ...]

    @property
    def slots(self) -> int:
        """Number of slots."""
        return max(self.slot_of) + 1

    @property
    def moving(self) -> tuple[int, ...]:
        """Layers whose weights are copied in each pass."""
        return tuple(n for n, other in enumerate(self.next_in_slot) if other != n)


def plan_offload(
    layers: int, layer_bytes: int, resident_bytes: int, budget: int, reserved: int
) -> OffloadPlan:
    """Plan the best use of a budget.

    Args:
        layers: number of layers.
        layer_bytes: weights of one layer.
        resident_bytes: weights that are always present: embeddings, LM head.
        budget: bytes of device memory for weights; 0 uses as few as possible.
        reserved: number of layers whose weights are ahead.

    Raises:
        OptionError: the budget is too small; the message has the needed bytes.
    """
    ring = min(reserved + 1, layers)
    least = resident_bytes + ring * layer_bytes
    if 0 < budget < least:
        raise OptionError(
            f"NPUW_WEIGHTS_BUDGET = {budget} is too small: {least} bytes are needed, "
            f"{resident_bytes} for weights outside the layers and {layer_bytes} for each of {ring} "
            "layers (NPUW_WEIGHTS_RESERVED and the one that computes)"
        )
    slots = min((budget - resident_bytes) // layer_bytes, layers) if budget else ring
    kept = layers if slots == layers else slots - ring
    return _spread(layers, kept, ring)


def _spread(layers: int, kept: int, ring: int) -> OffloadPlan:
    """Spread ``kept`` layers evenly; the other layers take turns in the ring's slots."""
    keeping = {(2 * number + 1) * layers // (2 * kept) for number in range(kept)}
    moving = [layer for layer in range(layers) if layer not in keeping]
    slot_of = dict(zip(moving, (n % ring for n in range(len(moving))), strict=True))
    first_kept = min(ring, len(moving))
    slot_of |= {layer: first_kept + n for n, layer in enumerate(sorted(keeping))}
    following: dict[int, int] = {}
    for slot in set(slot_of.values()):
        turns = sorted(layer for layer, its in slot_of.items() if its == slot)
        following |= dict(zip(turns, [*turns[1:], turns[0]], strict=True))
    return OffloadPlan(
        tuple(slot_of[layer] for layer in range(layers)),
        tuple(following[layer] for layer in range(layers)),
    )
