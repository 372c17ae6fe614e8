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
from compiler_layer.frontends.huggingface.rope import scaled_rotary
from compiler_layer.frontends.huggingface.rope_values import RopeValues, find_scaling

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

_PHI3_KINDS = {"su": "longrope", "yarn": "longrope"}
"""Kinds by the names that ``rope_scaling`` had for them."""

_PHI3_NAMES = replace(NAMES, qkv=("self_attn.qkv_proj",), up=("mlp.gate_up_proj",))


def plain_llama(config: Config, rope: RopeValues | None = None) -> Decoder:
    """Describe the common parts: RMSNorm, rotary embedding, gated SiLU, no biases.

    Args:
        config: the model's config.
        rope: the values of the rotary embedding; None for those that most families read.
    """
    config.choice("hidden_act", "silu")
    attention = read_attention(config)
    layer = Layer(None, scaled_rotary(rope or find_scaling(config), attention.head_dim))
    return Decoder(
        vocab_size=config.positive("vocab_size"),
        hidden_size=config.positive("hidden_size"),
        layers=(layer,) * config.layers("num_hidden_layers"),
        norm=Norm(NormKind.RMS, config.number("rms_norm_eps")),
        attention=attention,
        mlp=Mlp(config.positive("intermediate_size"), Activation.SILU),
        names=NAMES,
        tied_head=config.flag("tie_word_embeddings"),
    )


def llama(config: Config, rope: RopeValues | None = None) -> Decoder:
    """Describe Llama; the config enables biases."""
    plain = plain_llama(config, rope)
    bias = config.flag("attention_bias")
    return replace(
        plain,
        attention=replace(plain.attention, bias=bias, output_bias=bias),
        mlp=replace(plain.mlp, bias=config.flag("mlp_bias")),
    )


def mistral(config: Config) -> Decoder:
    """Describe Mistral: the same sliding window in every layer."""
    config.refuse("layer_types")
    rope = find_scaling(config)
    if config.value("head_dim") is None:
        # Transformers 4 fails there, as it multiplies null.
        rope = replace(rope, only_5=("dynamic", "longrope", "yarn"))
    window = config.optional_positive("sliding_window")
    return with_windows(plain_llama(config, rope), read_windows(config, window, lambda _: True))


def qwen2(config: Config) -> Decoder:
    """Describe Qwen2: biased queries, keys and values; optional windows in the upper layers."""
    plain = plain_llama(config)
    biased = replace(plain, attention=replace(plain.attention, bias=True))
    return with_windows(biased, _qwen_windows(config))


def qwen3(config: Config) -> Decoder:
    """Describe Qwen3: normalized query and key heads; windows as in Qwen2."""
    plain = plain_llama(config)
    bias = config.flag("attention_bias")
    attention = replace(plain.attention, bias=bias, output_bias=bias, head_norm=plain.norm)
    return with_windows(replace(plain, attention=attention), _qwen_windows(config))


def _qwen_windows(config: Config) -> list[int | None]:
    enabled = config.flag("use_sliding_window")
    window = config.optional_positive("sliding_window") if enabled else None
    return read_windows(config, window, lambda layer: layer >= config.count("max_window_layers"))


def granite(config: Config) -> Decoder:
    """Describe Granite: scaled embeddings, scores, residuals and logits."""
    plain = llama(config)
    scale = config.number("attention_multiplier")
    return replace(
        plain,
        attention=replace(plain.attention, scale=scale),
        embedding_scale=config.number("embedding_multiplier"),
        residual_scale=config.number("residual_multiplier"),
        logit_scale=1 / config.number("logits_scaling"),
    )


def olmo2(config: Config) -> Decoder:
    """Describe OLMo 2: norms after the blocks; queries and keys normalized over all heads."""
    config.refuse("mlp_bias")
    # Transformers 4 rejects all scalings that 5 computes in another way.
    plain = llama(config, replace(find_scaling(config), before_5=False))
    attention = replace(plain.attention, head_norm=plain.norm, norm_jointly=True)
    return replace(plain, attention=attention, names=_OLMO2_NAMES)


def phi3(config: Config) -> Decoder:
    """Describe Phi-3 and Phi-4-mini: fused projections, partly rotated heads, windows.

    With ``longrope``, ``original_max_position_embeddings`` limits the length of texts: for longer
    ones transformers uses other frequencies for all tokens.
    """
    config.refuse("attention_bias", "mlp_bias", "lm_head_bias", "layer_types")
    rope = find_scaling(config, share="partial_rotary_factor")
    old_kinds = _PHI3_KINDS if config.section("rope_scaling") else {}
    # Transformers 4 rejects all scalings that 5 computes in another way.
    rope = replace(rope, kinds=("default", "longrope"), old_kinds=old_kinds, before_5=False)
    plain = plain_llama(config, rope)
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
    slides = config.flag("use_sliding_window")
    window = config.optional_positive("sliding_window")
    windows = read_windows(config, window, lambda layer: slides and not rotated[layer])
    return with_windows(replace(plain, layers=tuple(layers)), windows)


def _rotated(config: Config, layers: int) -> list[bool]:
    """Return whether each layer has a rotary embedding; a 1 in the config means that it has."""
    listed: Any = config.value("no_rope_layers")
    if listed is None:
        interval = config.positive("no_rope_layer_interval")
        return [(layer + 1) % interval != 0 for layer in range(layers)]
    flags = cast(list[Any], listed) if isinstance(listed, list) else []
    if len(flags) != layers or any(each not in (0, 1) for each in flags):
        raise config.bad("no_rope_layers", f"a list of {layers} zeros and ones")
    return [bool(each) for each in flags]
