"""Phi-3 and Phi-4-mini: Llama with fused projections."""

from __future__ import annotations

from dataclasses import replace

from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.decoder import Decoder, Fusion
from compiler_layer.frontends.huggingface.families.attention import read_windows, with_windows
from compiler_layer.frontends.huggingface.families.llama import NAMES, plain_llama

_NAMES = replace(NAMES, qkv=("self_attn.qkv_proj",), up=("mlp.gate_up_proj",))


def phi3(config: Config) -> Decoder:
    """Rotary positions in a part of each head, and the same sliding window in every layer.

    With ``longrope``, texts may be as long as ``original_max_position_embeddings`` says: beyond
    it transformers takes other frequencies for the whole text.
    """
    for key in ("attention_bias", "mlp_bias", "lm_head_bias"):
        config.refuse_unless(key, False)
    config.refuse_unless("layer_types", None)
    plain = plain_llama(config, share=config.number("partial_rotary_factor", 1.0))
    fused = replace(plain, attention=replace(plain.attention, fusion=Fusion.WHOLE), names=_NAMES)
    window = config.optional_positive("sliding_window")
    return with_windows(fused, read_windows(config, window, lambda _: True))
