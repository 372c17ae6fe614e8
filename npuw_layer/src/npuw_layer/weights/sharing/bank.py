"""Lets the weights bank of a model share with other processes, if that is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Device, LoadedModel
from npuw_layer.llm.model_files import WeightSources
from npuw_layer.options import Options
from npuw_layer.storage.cache.known_files import KnownFiles
from npuw_layer.weights.bank import WeightsBank

if TYPE_CHECKING:
    from npuw_layer.weights.sharing.arena import SharedArena


def share_bank(
    bank: WeightsBank,
    loaded: Iterable[LoadedModel],
    sources: WeightSources,
    device: Device,
    options: Options,
) -> SharedArena | None:
    """Let a bank share its weights with other processes, if NPUW_WEIGHTS_BANK… say so.

    Args:
        bank: of a model.
        loaded: the model's programs.
        sources: where its weights are.
        device: where they will be.
        options: what was asked for.
    """
    if not options.shares_weights:
        return None
    from npuw_layer.weights.sharing.weights import (
        share_weights,  # who does not share loads no sockets
    )

    inputs = [info for model in loaded for info in model.inputs]
    in_place = options.weights_bank_alloc != "SHARED"
    weights = bank.to_allocate(inputs, in_place)
    known = KnownFiles(options.cache_folder)
    return share_weights(
        device, bank, weights, options.weights_bank, lambda: sources.read_digest(known)
    )
