"""From logits to probabilities: temperature, then softmax."""

from __future__ import annotations

import numpy as np

from genai_layer.sampling.processor import Logits

Probabilities = Logits
"""f32 [vocabulary]; 0 where a token is impossible. Filters leave the sum below 1."""


def softmax(logits: Logits, temperature: float = 1.0) -> Probabilities:
    """Give probabilities; a low temperature sharpens them."""
    shifted = np.exp((logits - logits.max()) / np.float32(temperature))
    return shifted / shifted.sum()
