"""Scores of cross-attention as outputs of a Whisper decoder.

The outputs are those of NPUW_WHISPER_DECOMPOSE_SDPA, see docs/reference/npuw.md#whisper.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from openvino import opset13

op: Any = opset13  # whose type stubs are incomplete

_SCALE = 4
"""Input of ScaledDotProductAttention that replaces the default scale."""


def add_scores(model: Any) -> None:
    """Add outputs ``cross_attention_qk_scaled_scores_<layer>``, f32 [B, heads, tokens, frames].

    The scores are scaled, before the softmax. Keys of cross-attention are read from a variable
    unchanged, those of self-attention are joined with new ones.
    """
    cross = [
        node
        for node in model.get_ordered_ops()
        if node.get_type_name() == "ScaledDotProductAttention"
        and node.input_value(1).get_node().get_type_name() == "ReadValue"
    ]
    for layer, node in enumerate(cross):
        query, key = node.input_value(0), node.input_value(1)
        width = query.get_partial_shape()[3].get_length()
        scaled = node.get_input_size() > _SCALE
        scale = node.input_value(_SCALE) if scaled else op.constant(width**-0.5, np.float32)
        scores = op.matmul(op.multiply(query, scale), key, False, True)
        scores.output(0).set_names({f"cross_attention_qk_scaled_scores_{layer}"})
        model.add_results([op.result(scores)])
