"""Isolation of a model's attentions as submodels, where options request it."""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from npuw_layer.backends.protocols import Device
from npuw_layer.execution.host_attention.flash_device import FlashAttentionDevice
from npuw_layer.execution.partition.ports import Isolation
from npuw_layer.options import Options
from npuw_layer.options.llm import ISOLATED
from npuw_layer.options.stages import KINDS, StageKind

if TYPE_CHECKING:
    from compiler_layer.model import Model
    from compiler_layer.partition.parts import PartOps

_log = logging.getLogger(__name__)

_LONGEST = 1024
"""Maximum rows of a tile if prompts are not chunked: the default chunk."""


def _attentions(model: Model, hint: str) -> Sequence[PartOps]:
    # Imported here: a warm start loads no graphs.
    from npuw_layer.execution.host_attention.groups import attention_groups

    return attention_groups(model, hint)


def attention_isolations(
    device: Device, options: Options, kinds: Container[StageKind] = KINDS
) -> Mapping[StageKind, Mapping[str, Isolation]]:
    """Return the isolations that the attention hints of prefill and generate request.

    Args:
        device: runs all other parts.
        options: the requested options.
        kinds: kinds of models that the device runs.

    Returns:
        For each kind of model with isolated attention, the isolation by its hint.

    Raises:
        OptionError: lengths contradict one another.
    """
    every = options.isolated_attention
    found: dict[StageKind, str] = {kind: every[kind] for kind in every if kind in kinds}
    if options.prefill_attention_hint in ISOLATED and "prefill" in kinds and "prefill" not in found:
        _log.info(
            "NPUW_LLM_PREFILL_ATTENTION_HINT: without chunks, %s has no effect",
            options.prefill_attention_hint,
        )
    by_hint = {
        hint: Isolation(_device(hint, device, options), partial(_attentions, hint=hint))
        for hint in sorted({*found.values()})
    }
    return {kind: {hint: by_hint[hint]} for kind, hint in found.items()}


def _device(hint: str, device: Device, options: Options) -> Device:
    if hint == "HFA":
        return FlashAttentionDevice(device, options.prefill_chunk_size or _LONGEST)
    from npuw_layer.execution.host_attention.dynamic_device import DynamicAttentionDevice

    return DynamicAttentionDevice(device)
