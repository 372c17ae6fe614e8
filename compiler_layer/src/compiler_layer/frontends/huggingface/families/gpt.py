"""GPT-2, and families with its structure: GPT-NeoX with Pythia, and StarCoder2."""

from __future__ import annotations

from dataclasses import replace

from compiler_layer.errors import BadModel
from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.decoder import (
    ACTIVATIONS,
    Attention,
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
from compiler_layer.frontends.huggingface.families.llama import NAMES
from compiler_layer.frontends.huggingface.rope import scaled_rotary
from compiler_layer.frontends.huggingface.rope_values import find_scaling

_GPT2_NAMES = ModuleNames(
    embedding="transformer.wte",
    positions="transformer.wpe",
    layer="transformer.h.{}",
    attention_norm="ln_1",
    qkv=("attn.c_attn",),
    output="attn.c_proj",
    mlp_norm="ln_2",
    up=("mlp.c_fc",),
    down="mlp.c_proj",
    norm="transformer.ln_f",
    head="lm_head",
)

_NEOX_NAMES = ModuleNames(
    embedding="gpt_neox.embed_in",
    layer="gpt_neox.layers.{}",
    attention_norm="input_layernorm",
    qkv=("attention.query_key_value",),
    output="attention.dense",
    mlp_norm="post_attention_layernorm",
    up=("mlp.dense_h_to_4h",),
    down="mlp.dense_4h_to_h",
    norm="gpt_neox.final_layer_norm",
    head="embed_out",
)

_STARCODER_NAMES = replace(NAMES, up=("mlp.c_fc",), down="mlp.c_proj")


def gpt2(config: Config) -> Decoder:
    """Describe GPT-2: LayerNorm, learned positions, biases everywhere, matrices as [in, out]."""
    config.require("scale_attn_weights", True)
    config.refuse("scale_attn_by_inverse_layer_idx", "add_cross_attention")
    activation = config.choice("activation_function", "gelu_new", "gelu_pytorch_tanh", "gelu")
    hidden, heads = config.positive("n_embd"), config.positive("n_head")
    if hidden % heads:
        raise BadModel(config.path, "n_head must divide n_embd")
    width = hidden // heads
    return Decoder(
        vocab_size=config.positive("vocab_size"),
        hidden_size=hidden,
        layers=(Layer(None, None),) * config.layers("n_layer"),
        norm=Norm(NormKind.LAYER, config.number("layer_norm_epsilon"), bias=True),
        attention=Attention(
            heads, heads, width, width**-0.5, Fusion.WHOLE, bias=True, output_bias=True
        ),
        mlp=Mlp(
            config.optional_positive("n_inner") or 4 * hidden,
            ACTIVATIONS[activation],
            gated=False,
            bias=True,
        ),
        names=_GPT2_NAMES,
        positions=config.positive("n_positions"),
        input_major=True,
        tied_head=config.flag("tie_word_embeddings"),
    )


def gpt_neox(config: Config) -> Decoder:
    """Describe GPT-NeoX: LayerNorm, a quarter of each head rotated, parallel blocks."""
    config.refuse("num_key_value_heads", "head_dim")
    activation = config.choice("hidden_act", "gelu", "gelu_new", "gelu_pytorch_tanh")
    bias = config.flag("attention_bias")
    attention = read_attention(config)
    rope = find_scaling(config, "rotary_emb_base", "rotary_pct")
    layer = Layer(None, scaled_rotary(rope, attention.head_dim))
    return Decoder(
        vocab_size=config.positive("vocab_size"),
        hidden_size=config.positive("hidden_size"),
        layers=(layer,) * config.layers("num_hidden_layers"),
        norm=Norm(NormKind.LAYER, config.number("layer_norm_eps"), bias=True),
        attention=replace(attention, fusion=Fusion.BY_HEAD, bias=bias, output_bias=bias),
        mlp=Mlp(
            config.positive("intermediate_size"), ACTIVATIONS[activation], gated=False, bias=True
        ),
        names=_NEOX_NAMES,
        parallel=config.flag("use_parallel_residual"),
        tied_head=config.flag("tie_word_embeddings"),
    )


def starcoder2(config: Config) -> Decoder:
    """Describe StarCoder2: LayerNorm, biases, an ungated feed-forward block, windows."""
    activation = config.choice("hidden_act", "gelu_pytorch_tanh", "gelu", "gelu_new")
    bias = config.flag("use_bias")
    attention = read_attention(config)
    layer = Layer(None, scaled_rotary(find_scaling(config), attention.head_dim))
    inner = config.positive("intermediate_size")
    decoder = Decoder(
        vocab_size=config.positive("vocab_size"),
        hidden_size=config.positive("hidden_size"),
        layers=(layer,) * config.layers("num_hidden_layers"),
        norm=Norm(NormKind.LAYER, config.number("norm_epsilon"), bias=True),
        attention=replace(attention, bias=bias, output_bias=bias),
        mlp=Mlp(inner, ACTIVATIONS[activation], gated=False, bias=bias),
        names=_STARCODER_NAMES,
        tied_head=config.flag("tie_word_embeddings"),
    )
    config.refuse("layer_types")
    window = config.optional_positive("sliding_window")
    return with_windows(decoder, read_windows(config, window, lambda _: True))
