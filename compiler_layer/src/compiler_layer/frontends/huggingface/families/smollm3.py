"""SmolLM3: Llama in which some layers have no position embedding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.decoder import Decoder
from compiler_layer.frontends.huggingface.families.attention import read_windows, with_windows
from compiler_layer.frontends.huggingface.families.llama import llama


def smollm3(config: Config) -> Decoder:
    """Describe SmolLM3: every fourth layer has no rotary embedding, but may have a window."""
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
    """Return whether each layer has a rotary embedding; a 1 in the config means that it has."""
    listed: Any = config.values.get("no_rope_layers")
    if listed is None:
        interval = config.positive("no_rope_layer_interval", 4)
        return [(layer + 1) % interval != 0 for layer in range(layers)]
    flags = cast(list[Any], listed) if isinstance(listed, list) else []
    if len(flags) != layers or any(each not in (0, 1) for each in flags):
        raise config.bad("no_rope_layers", f"a list of {layers} zeros and ones")
    return [bool(each) for each in flags]
