"""GPT-NeoX and Pythia."""

from __future__ import annotations

from dataclasses import replace

from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.decoder import (
    ACTIVATIONS,
    Decoder,
    Fusion,
    Layer,
    Mlp,
    ModuleNames,
    Norm,
    NormKind,
)
from compiler_layer.frontends.huggingface.families.attention import read_attention
from compiler_layer.frontends.huggingface.rope import read_rotary

_NAMES = ModuleNames(
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


def gpt_neox(config: Config) -> Decoder:
    """Describe GPT-NeoX: LayerNorm, a quarter of each head rotated, parallel blocks."""
    config.refuse_unless("num_key_value_heads", None)
    activation = config.choice("hidden_act", "gelu", "gelu_new", "gelu_pytorch_tanh")
    bias = config.flag("attention_bias", True)
    attention = read_attention(config)
    theta, share = config.number("rotary_emb_base", 10000.0), config.number("rotary_pct", 0.25)
    layer = Layer(None, read_rotary(config, attention.head_dim, theta, share))
    return Decoder(
        vocab_size=config.positive("vocab_size"),
        hidden_size=config.positive("hidden_size"),
        layers=(layer,) * config.layers("num_hidden_layers"),
        norm=Norm(NormKind.LAYER, config.number("layer_norm_eps", 1e-5), bias=True),
        attention=replace(attention, fusion=Fusion.BY_HEAD, bias=bias, output_bias=bias),
        mlp=Mlp(
            config.positive("intermediate_size"), ACTIVATIONS[activation], gated=False, bias=True
        ),
        names=_NAMES,
        parallel=config.flag("use_parallel_residual", True),
        tied_head=config.flag("tie_word_embeddings", False),
    )
