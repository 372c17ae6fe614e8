"""Llama, and families with small differences from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.decoder import (
    Activation,
    Decoder,
    Fusion,
    Layer,
    Mlp,
    ModuleNames,
    Norm,
    NormKind,
)
from compiler_layer.frontends.huggingface.families.attention import (
    read_attention,
    read_windows,
    with_windows,
)
from compiler_layer.frontends.huggingface.rope import read_rotary

NAMES = ModuleNames(
    embedding="model.embed_tokens",
    layer="model.layers.{}",
    attention_norm="input_layernorm",
    qkv=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    q_norm="self_attn.q_norm",
    k_norm="self_attn.k_norm",
    output="self_attn.o_proj",
    mlp_norm="post_attention_layernorm",
    up=("mlp.gate_proj", "mlp.up_proj"),
    down="mlp.down_proj",
    norm="model.norm",
    head="lm_head",
)

_OLMO2_NAMES = replace(
    NAMES,
    attention_norm=None,
    attention_output_norm="post_attention_layernorm",
    mlp_norm=None,
    mlp_output_norm="post_feedforward_layernorm",
)

_PHI3_NAMES = replace(NAMES, qkv=("self_attn.qkv_proj",), up=("mlp.gate_up_proj",))


def plain_llama(config: Config, head_dim: int | None = None, share: float = 1.0) -> Decoder:
    """Describe the common parts: RMSNorm, rotary embedding, gated SiLU, no biases.

    Args:
        config: the model's config.
        head_dim: default number of channels of a head; None: a head's share of hidden_size.
        share: the fraction of channels that the rotary embedding rotates.
    """
    config.choice("hidden_act", "silu")
    attention = read_attention(config, head_dim)
    theta = config.number("rope_theta", 10000.0)
    layer = Layer(None, read_rotary(config, attention.head_dim, theta, share))
    return Decoder(
        vocab_size=config.positive("vocab_size"),
        hidden_size=config.positive("hidden_size"),
        layers=(layer,) * config.layers("num_hidden_layers"),
        norm=Norm(NormKind.RMS, config.number("rms_norm_eps", 1e-6)),
        attention=attention,
        mlp=Mlp(config.positive("intermediate_size"), Activation.SILU),
        names=NAMES,
        tied_head=config.flag("tie_word_embeddings", False),
    )


def llama(config: Config) -> Decoder:
    """Describe Llama; the config enables biases."""
    plain = plain_llama(config)
    bias = config.flag("attention_bias", False)
    return replace(
        plain,
        attention=replace(plain.attention, bias=bias, output_bias=bias),
        mlp=replace(plain.mlp, bias=config.flag("mlp_bias", False)),
    )


def mistral(config: Config) -> Decoder:
    """Describe Mistral: the same sliding window in every layer."""
    config.refuse_unless("layer_types", None)
    window = config.optional_positive("sliding_window")
    return with_windows(plain_llama(config), read_windows(config, window, lambda _: True))


def qwen2(config: Config) -> Decoder:
    """Describe Qwen2: biased queries, keys and values; optional windows in the upper layers."""
    plain = plain_llama(config)
    biased = replace(plain, attention=replace(plain.attention, bias=True))
    return with_windows(biased, _qwen_windows(config))


def qwen3(config: Config) -> Decoder:
    """Describe Qwen3: normalized query and key heads; windows as in Qwen2."""
    plain = plain_llama(config, head_dim=128)
    bias = config.flag("attention_bias", False)
    attention = replace(plain.attention, bias=bias, output_bias=bias, head_norm=plain.norm)
    return with_windows(replace(plain, attention=attention), _qwen_windows(config))


def _qwen_windows(config: Config) -> list[int | None]:
    wanted = config.flag("use_sliding_window", False)
    window = config.positive("sliding_window", 4096) if wanted else None
    first = config.count("max_window_layers", 28)
    return read_windows(config, window, lambda layer: layer >= first)


def granite(config: Config) -> Decoder:
    """Describe Granite: scaled embeddings, scores, residuals and logits."""
    plain = llama(config)
    scale = config.number("attention_multiplier", 1.0)
    return replace(
        plain,
        attention=replace(plain.attention, scale=scale),
        embedding_scale=config.number("embedding_multiplier", 1.0),
        residual_scale=config.number("residual_multiplier", 1.0),
        logit_scale=1 / config.number("logits_scaling", 1.0),
    )


def olmo2(config: Config) -> Decoder:
    """Describe OLMo 2: norms after the blocks; queries and keys normalized over all heads."""
    config.refuse_unless("mlp_bias", False)
    plain = llama(config)
    epsilon = config.number("rms_norm_eps", 1e-5)
    norm = replace(plain.norm, epsilon=epsilon)
    attention = replace(plain.attention, head_norm=norm, norm_jointly=True)
    return replace(plain, norm=norm, attention=attention, names=_OLMO2_NAMES)


def phi3(config: Config) -> Decoder:
    """Describe Phi-3 and Phi-4-mini: fused projections, partly rotated heads, windows.

    With ``longrope``, ``original_max_position_embeddings`` limits the length of texts: for longer
    ones transformers uses other frequencies for all tokens.
    """
    for key in ("attention_bias", "mlp_bias", "lm_head_bias"):
        config.refuse_unless(key, False)
    config.refuse_unless("layer_types", None)
    plain = plain_llama(config, share=config.number("partial_rotary_factor", 1.0))
    fused = replace(
        plain, attention=replace(plain.attention, fusion=Fusion.WHOLE), names=_PHI3_NAMES
    )
    window = config.optional_positive("sliding_window")
    return with_windows(fused, read_windows(config, window, lambda _: True))


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
