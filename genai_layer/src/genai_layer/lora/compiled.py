"""A model that is compiled with adapters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from genai_layer.errors import PropertyError
from genai_layer.lora.adapter_config import AdapterConfig
from genai_layer.lora.placement import blend
from genai_layer.runtime import CompiledModel, Core, TakesAdapters


def compile_with(
    core: Core,
    model: Path,
    device: str,
    properties: Mapping[str, Any],
    config: AdapterConfig | None,
) -> CompiledModel:
    """Compile a model, so that it can take adapters.

    Args:
        core: what compiles it.
        model: its IR or folder.
        device: e.g. "NPU".
        properties: of the runtime.
        config: the first adapters; of any others at most the same layers count. None if there are
            to be none, or the model is compiled already.

    Raises:
        PropertyError: the runtime takes none.
        AdapterError: an adapter is not one of this model.
        RuntimeError: the runtime cannot compile the model.
    """
    if config is None:
        return core.compile_model(model, device, properties)
    if not isinstance(core, TakesAdapters):
        raise PropertyError(
            f"adapters: the runtime of device {device} takes none (TakesAdapters); leave them out"
        )
    added = blend(config.get_adapters_and_alphas(), core.adaptable_products(model))
    mode = config.mode.settled.name.removeprefix("MODE_")
    return core.compile_adapted(model, device, properties, added, mode)
