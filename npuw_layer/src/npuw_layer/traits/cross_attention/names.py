"""What the inputs, outputs and variables of a Whisper decoder are called."""

from __future__ import annotations

import re

ENCODER_STATES = "encoder_hidden_states"
"""The input f32 [1, frames, channels]: what the encoder made of the audio."""

SCORES = "cross_attention_qk_scaled_scores"
"""Begins the names of the outputs f32 [1, heads, tokens, frames]: what each layer attends to."""

_CROSS = re.compile(r"past_key_values\.\d+\.encoder\.(key|value)")


def cross_variable(layer: int, part: str) -> str:
    """What the K or V of a layer's cross-attention is called: ``past_key_values.0.encoder.key``.

    Source: the original's names of them, as inputs (fact sheet npuw §a.3).
    """
    return f"past_key_values.{layer}.encoder.{part}"


def is_cross_variable(name: str) -> bool:
    """Whether a variable is a K or V of cross-attention."""
    return _CROSS.fullmatch(name) is not None


def scores_output(layer: int) -> str:
    """What the scores of a layer's cross-attention are called."""
    return f"{SCORES}_{layer}"
