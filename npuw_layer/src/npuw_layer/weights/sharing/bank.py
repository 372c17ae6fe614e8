"""Sharing of a model's weights bank with other processes, on request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Device, LoadedModel
from npuw_layer.options import Options
from npuw_layer.weights.bank import WeightsBank

if TYPE_CHECKING:
    from npuw_layer.weights.sharing.arena import SharedArena


def share_bank(
    bank: WeightsBank,
    loaded: Iterable[LoadedModel],
    digest: Callable[[], str],
    device: Device,
    options: Options,
) -> SharedArena | None:
    """Share a bank's weights with other processes, if NPUW_WEIGHTS_BANK… request it.

    Args:
        bank: the bank of a model.
        loaded: the model's programs.
        digest: hashes the model's files.
        device: device that holds the weights.
        options: the requested options.

    Returns:
        The arena; None if sharing is not requested or not possible.
    """
    if not options.shares_weights:
        return None
    from npuw_layer.weights.sharing.weights import (
        share_weights,  # imported here: without sharing, no sockets are loaded
    )

    inputs = [info for model in loaded for info in model.inputs]
    in_place = options.weights_bank_alloc != "SHARED"
    weights = bank.to_allocate(inputs, in_place)
    return share_weights(device, bank, weights, options.weights_bank, digest)
