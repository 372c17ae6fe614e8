"""Compilation of a model with adapters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from genai_layer.abilities import SupportsAdapters
from genai_layer.errors import PropertyError
from genai_layer.lora.adapter_config import AdapterConfig
from genai_layer.lora.placement import blend
from genai_layer.runtime import AnyModel, CompiledModel, Core


def compile_with(
    core: Core,
    model: AnyModel,
    device: str,
    properties: Mapping[str, Any],
    config: AdapterConfig | None,
) -> CompiledModel:
    """Compile a model so that it supports adapters.

    Args:
        core: the runtime.
        model: its IR or folder, or a model that the runtime has read.
        device: e.g. "NPU".
        properties: of the runtime.
        config: the first adapters; later ones may adapt only the same layers. None if the
            pipeline has no adapters, or the model is already compiled.

    Raises:
        PropertyError: the runtime does not support adapters.
        AdapterError: an adapter belongs to another model.
        RuntimeError: the runtime cannot compile the model.
    """
    if config is None:
        return core.compile_model(model, device, properties)
    if not isinstance(core, SupportsAdapters):
        raise PropertyError(
            f"adapters: device {device} does not support them (SupportsAdapters); leave them out"
        )
    added = blend(config.get_adapters_and_alphas(), core.adaptable_matmuls(model))
    mode = config.mode.settled.name.removeprefix("MODE_")
    return core.compile_adapted(model, device, properties, added, mode)
