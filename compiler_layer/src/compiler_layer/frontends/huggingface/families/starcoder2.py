"""StarCoder2: GPT-2's structure with rotary embedding and shared key heads."""

from __future__ import annotations

from dataclasses import replace

from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.decoder import (
    ACTIVATIONS,
    Decoder,
    Layer,
    Mlp,
    Norm,
    NormKind,
)
from compiler_layer.frontends.huggingface.families.attention import (
    read_attention,
    read_windows,
    with_windows,
)
from compiler_layer.frontends.huggingface.families.llama import NAMES
from compiler_layer.frontends.huggingface.rope import read_rotary

_NAMES = replace(NAMES, up=("mlp.c_fc",), down="mlp.c_proj")


def starcoder2(config: Config) -> Decoder:
    """Describe StarCoder2: LayerNorm, biases, an ungated feed-forward block, windows."""
    activation = config.choice("hidden_act", "gelu_pytorch_tanh", "gelu", "gelu_new")
    bias = config.flag("use_bias", True)
    attention = read_attention(config)
    theta = config.number("rope_theta", 10000.0)
    layer = Layer(None, read_rotary(config, attention.head_dim, theta))
    inner = config.positive("intermediate_size")
    decoder = Decoder(
        vocab_size=config.positive("vocab_size"),
        hidden_size=config.positive("hidden_size"),
        layers=(layer,) * config.layers("num_hidden_layers"),
        norm=Norm(NormKind.LAYER, config.number("norm_epsilon", 1e-5), bias=True),
        attention=replace(attention, bias=bias, output_bias=bias),
        mlp=Mlp(inner, ACTIVATIONS[activation], gated=False, bias=bias),
        names=_NAMES,
        tied_head=config.flag("tie_word_embeddings", True),
    )
    config.refuse_unless("layer_types", None)
    window = config.optional_positive("sliding_window")
    return with_windows(decoder, read_windows(config, window, lambda _: True))
