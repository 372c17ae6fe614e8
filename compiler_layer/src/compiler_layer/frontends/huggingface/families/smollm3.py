"""SmolLM3: Llama where some layers do not know positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.decoder import Decoder
from compiler_layer.frontends.huggingface.families.attention import read_windows, with_windows
from compiler_layer.frontends.huggingface.families.llama import llama


def smollm3(config: Config) -> Decoder:
    """Every fourth layer is without rotary positions; those may have windows."""
    plain = llama(config)
    rotated = _rotated(config, len(plain.layers))
    layers = [
        layer if turned else replace(layer, rotary=None)
        for layer, turned in zip(plain.layers, rotated, strict=True)
    ]
    tied = config.flag("tie_word_embeddings", True)
    wanted = config.flag("use_sliding_window", False)
    window = config.optional_positive("sliding_window") if wanted else None
    windows = read_windows(config, window, lambda layer: not rotated[layer])
    return with_windows(replace(plain, layers=tuple(layers), tied_head=tied), windows)


def _rotated(config: Config, layers: int) -> list[bool]:
    """For each layer, whether positions are embedded; in the config 1 means that they are."""
    listed: Any = config.values.get("no_rope_layers")
    if listed is None:
        interval = config.positive("no_rope_layer_interval", 4)
        return [(layer + 1) % interval != 0 for layer in range(layers)]
    flags = cast(list[Any], listed) if isinstance(listed, list) else []
    if len(flags) != layers or any(each not in (0, 1) for each in flags):
        raise config.bad("no_rope_layers", f"a list of {layers} zeros and ones")
    return [bool(each) for each in flags]
