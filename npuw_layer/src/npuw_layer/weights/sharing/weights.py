"""The arena of a weights bank."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from compiler_layer.elements import stored_bytes
from compiler_layer.weights import WeightRef
from npuw_layer.backends.protocols import (
    Array,
    Device,
    SharingDevice,
    TensorInfo,
    ability,
)
from npuw_layer.errors import ModelError, SharingError
from npuw_layer.weights.bank import WeightsBank
from npuw_layer.weights.layout import ArenaLayout, identify, plan_layout
from npuw_layer.weights.sharing.arena import SharedArena, join_arena

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Source:
    """Source of an arena's bytes."""

    bank: WeightsBank
    weights: Mapping[str, TensorInfo]
    layout: ArenaLayout
    digest: Callable[[], str]
    expected: str

    def fill(self, arena: Array) -> None:
        """Write all weights.

        Raises:
            ModelError: a weight cannot be read, or the files changed meanwhile.
        """
        for name, info in self.weights.items():
            slot = self.layout.slots[name]
            arena[slot.offset : slot.offset + slot.nbytes] = self.bank.read(info)
        self.bank.drop_pages(self.weights)
        if self.digest() != self.expected:
            raise ModelError("the model's files were changed while its weights were read")


def share_weights(
    device: Device,
    bank: WeightsBank,
    weights: Mapping[str, TensorInfo],
    name: str,
    digest: Callable[[], str],
) -> SharedArena | None:
    """Move a bank's weights to an arena that all processes of the user share.

    Other weights are used in their mapped files, which the system keeps once for all processes. If
    sharing is not possible here, the bank keeps its own copies, and a warning has the reason.

    Args:
        device: the bank's device.
        bank: a bank that no program uses yet.
        weights: weights to put in the arena, from ``bank.to_allocate``.
        name: the bank's name.
        digest: hashes the model's files.

    Returns:
        The arena, which serves other processes while it is referenced; None if it cannot be shared.

    Raises:
        ModelError: a weight cannot be read from the model's files.
        DeviceError: the device has no memory left.
    """
    sharing = ability(device, SharingDevice)
    if sharing is None:
        _log.warning("bank %r: memory of this device cannot be shared", name)
        return None
    layout = plan_layout({weight: _nbytes(info) for weight, info in weights.items()})
    model = digest()
    source = _Source(bank, weights, layout, digest, model)
    try:
        arena = join_arena(
            sharing, identify(name, model, layout), layout, source.fill, bank.mapped_files
        )
    except SharingError as error:
        _log.warning("bank %r: %s; weights are copied for this process only", name, error)
        return None
    bank.place_in(arena.memory, {weight: slot.offset for weight, slot in layout.slots.items()})
    return arena


def _nbytes(weight: TensorInfo) -> int:
    """Bytes of a weight as the program reads it."""
    return stored_bytes(WeightRef.parse(weight.name).element, math.prod(weight.shape))
