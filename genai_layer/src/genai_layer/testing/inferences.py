"""Inferences and comparisons that the checks of runtimes share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from genai_layer.runtime import Array, InferRequest, last_logits


def inputs_for(tokens: Sequence[int], past: int = 0) -> dict[str, Array]:
    """Return the inputs of an inference on ``tokens`` after ``past`` other tokens."""
    count = len(tokens)
    return {
        "input_ids": np.array([tokens], np.int64),
        "attention_mask": np.ones((1, past + count), np.int64),
        "position_ids": np.arange(past, past + count, dtype=np.int64)[None],
        "beam_idx": np.zeros(1, np.int32),
    }


def logits_of(request: InferRequest, tokens: Sequence[int], past: int = 0) -> Array:
    """Run tokens after ``past`` others; return the last one's logits, f32 [vocabulary]."""
    request.infer(inputs_for(tokens, past))
    return last_logits(request)


def distance(found: Array, expected: Array) -> float:
    """Return the largest difference of logits, relative to the largest logit."""
    return float(np.abs(found - expected).max() / max(float(np.abs(expected).max()), 1e-9))


def assert_close(found: Array, expected: Array, tolerance: float, what: str) -> None:
    """Assert that logits are equal within a relative tolerance."""
    error = distance(found, expected)
    assert error <= tolerance, f"{what}: logits differ by {error:.2e}, relative to the largest"
