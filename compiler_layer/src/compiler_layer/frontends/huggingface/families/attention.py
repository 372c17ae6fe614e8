"""Attention settings that the configs of most families share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from compiler_layer.errors import BadModel
from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.decoder import Attention, Decoder

_FULL, _SLIDING = "full_attention", "sliding_attention"


def read_attention(config: Config) -> Attention:
    """Read heads and their width.

    Without a value, there are as many key heads as heads, and a head's width is its share of
    ``hidden_size``.

    Raises:
        BadModel: the numbers are inconsistent.
    """
    heads = config.positive("num_attention_heads")
    key_heads = config.optional_positive("num_key_value_heads") or heads
    width = config.optional_positive("head_dim") or config.positive("hidden_size") // heads
    if heads % key_heads or width % 2 or not width:
        raise BadModel(
            config.path,
            "num_key_value_heads must divide num_attention_heads, and head_dim must be even",
        )
    return Attention(heads, key_heads, width, width**-0.5)


def read_windows(
    config: Config, window: int | None, slides: Callable[[int], bool]
) -> list[int | None]:
    """Read the sliding window of each layer; None for full attention.

    Args:
        config: may list ``layer_types``.
        window: the length of the sliding windows.
        slides: returns whether a layer has a window; used if the config does not list them.

    Raises:
        BadModel: the list is malformed, or a layer needs a window that the config does not set.
        UnsupportedModel: a layer is of another type.
    """
    layers = range(config.layers("num_hidden_layers"))
    types: Any = config.value("layer_types")
    if types is None:
        return [window if window is not None and slides(layer) else None for layer in layers]
    if not isinstance(types, list) or len(cast(list[Any], types)) != len(layers):
        raise config.bad("layer_types", f"a list of {len(layers)} names")
    listed = cast(list[Any], types)
    if any(each not in (_FULL, _SLIDING) for each in listed):
        raise config.unsupported("layer_types")
    if _SLIDING in listed and window is None:
        raise config.bad("sliding_window", f"positive for layers of {_SLIDING}")
    return [window if each == _SLIDING else None for each in listed]


def refuse_windows(config: Config) -> None:
    """Reject ``layer_types`` with windows, for families without them.

    The layers of transformers ignore the list, but its cache drops the tokens outside the window:
    it fails, or its results depend on how a text is divided.
    """
    listed: Any = config.value("layer_types")
    if isinstance(listed, list) and _SLIDING in listed:
        raise config.unsupported("layer_types")


def with_windows(decoder: Decoder, windows: Sequence[int | None]) -> Decoder:
    """Return a decoder whose layers have the given windows."""
    paired = zip(decoder.layers, windows, strict=True)
    return replace(decoder, layers=tuple(replace(layer, window=window) for layer, window in paired))
