"""Names of the inputs, outputs and variables of a Whisper decoder."""

from __future__ import annotations

import re

ENCODER_STATES = "encoder_hidden_states"
"""Input f32 [1, frames, channels]: the encoder's states of the audio."""

SCORES = "cross_attention_qk_scaled_scores"
"""Name prefix of the outputs f32 [1, heads, tokens, frames], the attention scores of a layer."""

_CROSS = re.compile(r"past_key_values\.\d+\.encoder\.(key|value)")


def cross_variable(layer: int, part: str) -> str:
    """Return the name of a layer's K or V, e.g. ``past_key_values.0.encoder.key``.

    Source: NPUW's names of the inputs (docs/reference/npuw.md#whisper).
    """
    return f"past_key_values.{layer}.encoder.{part}"


def is_cross_variable(name: str) -> bool:
    """Return whether a variable is a K or V of cross-attention."""
    return _CROSS.fullmatch(name) is not None


def scores_output(layer: int) -> str:
    """Return the name of the scores of a layer's cross-attention."""
    return f"{SCORES}_{layer}"
