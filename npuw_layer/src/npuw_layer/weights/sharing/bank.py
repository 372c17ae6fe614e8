"""The arena of a model's weights bank, on request."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from compiler_layer.elements import stored_bytes
from compiler_layer.weights import WeightRef
from npuw_layer.backends.protocols import (
    Array,
    Device,
    LoadedModel,
    SharingDevice,
    TensorInfo,
    ability,
)
from npuw_layer.errors import ModelError, SharingError
from npuw_layer.options import Options
from npuw_layer.weights.bank import WeightsBank
from npuw_layer.weights.stored_weights import identify, plan_layout

if TYPE_CHECKING:
    from npuw_layer.weights.sharing.arena import SharedArena

_log = logging.getLogger(__name__)


def share_bank(
    bank: WeightsBank,
    loaded: Iterable[LoadedModel],
    digest: Callable[[], str],
    device: Device,
    options: Options,
) -> SharedArena | None:
    """Move a bank's weights to an arena that processes share, if NPUW_WEIGHTS_BANK… request it.

    Other weights are used in their mapped files, which the system keeps once for all processes. If
    sharing is not possible here, the bank keeps its own copies, and a warning has the reason.

    Args:
        bank: the bank of a model, which no program uses yet.
        loaded: the model's programs.
        digest: hashes the model's files.
        device: device that holds the weights.
        options: the requested options.

    Returns:
        The arena, which serves other processes while it is referenced; None if sharing is not
        requested or not possible.

    Raises:
        ModelError: a weight cannot be read from the model's files.
        DeviceError: the device has no memory left.
    """
    if not options.shares_weights:
        return None
    # Imported here: without sharing, no sockets are loaded.
    from npuw_layer.weights.sharing.arena import join_arena

    inputs = [info for model in loaded for info in model.inputs]
    weights = bank.to_allocate(inputs, options.weights_bank_alloc != "SHARED")
    name, sharing = options.weights_bank, ability(device, SharingDevice)
    if sharing is None:
        _log.warning("bank %r: memory of this device cannot be shared", name)
        return None
    layout = plan_layout({weight: _nbytes(info) for weight, info in weights.items()})
    model = digest()

    def fill(arena: Array) -> None:
        for weight, info in weights.items():
            slot = layout.slots[weight]
            arena[slot.offset : slot.offset + slot.nbytes] = bank.read(info)
        bank.drop_pages(weights)
        if digest() != model:
            raise ModelError("the model's files were changed while its weights were read")

    try:
        arena = join_arena(sharing, identify(name, model, layout), layout, fill, bank.mapped_files)
    except SharingError as error:
        _log.warning("bank %r: %s; weights are copied for this process only", name, error)
        return None
    bank.place_in(arena.memory, {weight: slot.offset for weight, slot in layout.slots.items()})
    return arena


def _nbytes(weight: TensorInfo) -> int:
    """Bytes of a weight as the program reads it."""
    return stored_bytes(WeightRef.parse(weight.name).element, math.prod(weight.shape))
