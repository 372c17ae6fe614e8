"""Granite: Llama with scales at all its joints."""

from __future__ import annotations

from dataclasses import replace

from compiler_layer.frontends.huggingface.config import Config
from compiler_layer.frontends.huggingface.decoder import Decoder
from compiler_layer.frontends.huggingface.families.llama import llama


def granite(config: Config) -> Decoder:
    """Embeddings, scores, residuals and logits are scaled."""
    plain = llama(config)
    scale = config.number("attention_multiplier", 1.0)
    return replace(
        plain,
        attention=replace(plain.attention, scale=scale),
        embedding_scale=config.number("embedding_multiplier", 1.0),
        residual_scale=config.number("residual_multiplier", 1.0),
        logit_scale=1 / config.number("logits_scaling", 1.0),
    )
