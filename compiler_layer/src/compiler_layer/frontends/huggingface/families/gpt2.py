"""GPT-2."""

from __future__ import annotations

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

_NAMES = ModuleNames(
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


def gpt2(config: Config) -> Decoder:
    """Describe GPT-2: LayerNorm, learned positions, biases everywhere, matrices as [in, out]."""
    config.refuse_unless("scale_attn_weights", True)
    for key in ("scale_attn_by_inverse_layer_idx", "add_cross_attention"):
        config.refuse_unless(key, False)
    activation = config.choice("activation_function", "gelu_new", "gelu_pytorch_tanh", "gelu")
    hidden, heads = config.positive("n_embd", 768), config.positive("n_head", 12)
    if hidden % heads:
        raise BadModel(config.path, "n_head must divide n_embd")
    width = hidden // heads
    return Decoder(
        vocab_size=config.positive("vocab_size", 50257),
        hidden_size=hidden,
        layers=(Layer(None, None),) * config.layers("n_layer", 12),
        norm=Norm(NormKind.LAYER, config.number("layer_norm_epsilon", 1e-5), bias=True),
        attention=Attention(
            heads, heads, width, width**-0.5, Fusion.WHOLE, bias=True, output_bias=True
        ),
        mlp=Mlp(
            config.positive("n_inner", 4 * hidden),
            ACTIVATIONS[activation],
            gated=False,
            bias=True,
        ),
        names=_NAMES,
        positions=config.positive("n_positions", 1024),
        input_major=True,
        tied_head=config.flag("tie_word_embeddings", True),
    )
