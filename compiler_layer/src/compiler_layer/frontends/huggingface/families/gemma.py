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
from compiler_layer.frontends.huggingface.rope import scaled_rotary
from compiler_layer.frontends.huggingface.rope_values import RopeValues, find_scaling

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
    rotary = scaled_rotary(find_scaling(config), plain.attention.head_dim)
    windows = _windows(config, every=2)
    cap = config.optional_number("attn_logit_softcapping")
    return replace(
        plain,
        layers=tuple(Layer(window, rotary) for window in windows),
        attention=replace(plain.attention, softcap=cap),
    )


def gemma3(config: Config) -> Decoder:
    """Describe Gemma 3: normalized heads; layers with a window have separate rotary frequencies."""
    config.refuse("attn_logit_softcapping")
    plain = _gemma(config)
    wide, near = (scaled_rotary(each, plain.attention.head_dim) for each in _ropes(config))
    windows = _windows(config, every=config.positive("sliding_window_pattern"))
    return replace(
        plain,
        layers=tuple(Layer(window, wide if window is None else near) for window in windows),
        attention=replace(plain.attention, head_norm=plain.norm),
    )


def _ropes(config: Config) -> tuple[RopeValues, RopeValues]:
    """Return the rotary embeddings of layers with full attention, and with a window.

    Since transformers 5, ``rope_parameters`` holds both, and ``rope_scaling`` changes the first.
    """
    none = Config(config.path, {})
    old = config.section("rope_scaling") or none
    before_5 = bool(old.values) and config.before_5
    if "rope_type" not in old.values:
        old.refuse("type")
    both = none if before_5 else config.section("rope_parameters") or none
    full, sliding = (both.section(f"{kind}_attention") or none for kind in ("full", "sliding"))
    full = replace(full, values={**full.values, **old.values})
    return (
        RopeValues(config, full, "rope_theta", before_5=before_5, by_layer_type=True),
        RopeValues(config, sliding, "rope_local_base_freq", by_layer_type=True),
    )


def _gemma(config: Config) -> Decoder:
    """Return the common parts of both models, without layers."""
    config.choice("hidden_activation", "gelu_pytorch_tanh")
    config.refuse("use_bidirectional_attention")
    attention = read_attention(config)
    bias = config.flag("attention_bias")
    scale = config.number("query_pre_attn_scalar") ** -0.5
    hidden = config.positive("hidden_size")
    return Decoder(
        vocab_size=config.positive("vocab_size"),
        hidden_size=hidden,
        layers=(),
        norm=Norm(NormKind.RMS, config.number("rms_norm_eps"), offset=1.0),
        attention=replace(attention, scale=scale, bias=bias, output_bias=bias),
        mlp=Mlp(config.positive("intermediate_size"), Activation.GELU_TANH),
        names=_NAMES,
        embedding_scale=hidden**0.5,
        tied_head=config.flag("tie_word_embeddings"),
        logit_softcap=config.optional_number("final_logit_softcapping"),
    )


def _windows(config: Config, every: int) -> list[int | None]:
    """Return windows for all layers but those whose number, from 1, is a multiple of ``every``."""
    window = config.positive("sliding_window")
    return read_windows(config, window, lambda layer: (layer + 1) % every != 0)
