"""Gemma 2 and the text model of Gemma 3."""

from __future__ import annotations

from dataclasses import replace

from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.decoder import (
    Activation,
    Decoder,
    Layer,
    Mlp,
    Norm,
    NormKind,
)
from compiler_layer.frontends.huggingface.families.attention import read_attention, read_windows
from compiler_layer.frontends.huggingface.families.llama import NAMES
from compiler_layer.frontends.huggingface.rope import read_rotary, scaled_rotary

_NAMES = replace(
    NAMES,
    attention_output_norm="post_attention_layernorm",
    mlp_norm="pre_feedforward_layernorm",
    mlp_output_norm="post_feedforward_layernorm",
)


def gemma2(config: Config) -> Decoder:
    """Describe Gemma 2: norms around blocks, alternating windows, soft-capped scores and logits.

    The scores' cap is that of transformers' eager attention; its sdpa attention omits it.
    """
    plain = _gemma(config)
    rotary = read_rotary(config, plain.attention.head_dim, config.number("rope_theta", 10000.0))
    windows = _windows(config, every=2)
    cap = _cap(config, "attn_logit_softcapping", 50.0)
    return replace(
        plain,
        layers=tuple(Layer(window, rotary) for window in windows),
        attention=replace(plain.attention, softcap=cap),
        logit_softcap=_cap(config, "final_logit_softcapping", 30.0),
    )


def gemma3(config: Config) -> Decoder:
    """Describe Gemma 3: normalized heads; layers with a window have separate rotary frequencies."""
    config.refuse_unless("attn_logit_softcapping", None)
    config.refuse_unless("use_bidirectional_attention", False)
    plain = _gemma(config)
    width = plain.attention.head_dim
    # Since transformers 5, one object holds both, by layer type.
    both = config.section("rope_parameters") or Config(config.path, {})
    scaling = both.section("full_attention") or config.section("rope_scaling")
    wide = scaled_rotary(config, scaling, width, config.number("rope_theta", 1e6))
    local = both.section("sliding_attention")
    near = scaled_rotary(config, local, width, config.number("rope_local_base_freq", 10000.0))
    windows = _windows(config, every=config.positive("sliding_window_pattern", 6))
    return replace(
        plain,
        layers=tuple(Layer(window, wide if window is None else near) for window in windows),
        attention=replace(plain.attention, head_norm=plain.norm),
        logit_softcap=config.optional_number("final_logit_softcapping"),
    )


def _gemma(config: Config) -> Decoder:
    """Return the common parts of both models, without layers."""
    config.choice("hidden_activation", "gelu_pytorch_tanh")
    attention = read_attention(config, head_dim=256)
    bias = config.flag("attention_bias", False)
    scale = config.number("query_pre_attn_scalar", 256) ** -0.5
    hidden = config.positive("hidden_size")
    return Decoder(
        vocab_size=config.positive("vocab_size"),
        hidden_size=hidden,
        layers=(),
        norm=Norm(NormKind.RMS, config.number("rms_norm_eps", 1e-6), offset=1.0),
        attention=replace(attention, scale=scale, bias=bias, output_bias=bias),
        mlp=Mlp(config.positive("intermediate_size"), Activation.GELU_TANH),
        names=_NAMES,
        embedding_scale=hidden**0.5,
        tied_head=config.flag("tie_word_embeddings", True),
    )


def _windows(config: Config, every: int) -> list[int | None]:
    """Return windows for all layers but those whose number, from 1, is a multiple of ``every``."""
    window = config.positive("sliding_window", 4096)
    return read_windows(config, window, lambda layer: (layer + 1) % every != 0)


def _cap(config: Config, key: str, default: float) -> float | None:
    """Return a soft cap; an absent key selects the default, null disables it."""
    return config.optional_number(key) if key in config.values else default
