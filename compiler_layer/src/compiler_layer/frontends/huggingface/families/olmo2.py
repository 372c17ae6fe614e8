"""OLMo 2: Llama with its norms behind the blocks."""

from __future__ import annotations

from dataclasses import replace

from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.decoder import Decoder
from compiler_layer.frontends.huggingface.families.llama import NAMES, llama

_NAMES = replace(
    NAMES,
    attention_norm=None,
    attention_output_norm="post_attention_layernorm",
    mlp_norm=None,
    mlp_output_norm="post_feedforward_layernorm",
)


def olmo2(config: Config) -> Decoder:
    """Queries and keys are normalised, too, over all heads at once."""
    config.refuse_unless("mlp_bias", False)
    plain = llama(config)
    epsilon = config.number("rms_norm_eps", 1e-5)
    norm = replace(plain.norm, epsilon=epsilon)
    attention = replace(plain.attention, head_norm=norm, norm_jointly=True)
    return replace(plain, norm=norm, attention=attention, names=_NAMES)
