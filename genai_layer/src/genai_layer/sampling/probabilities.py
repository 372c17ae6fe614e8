"""Probabilities of tokens: softmax, the min-p and top-p filters, and the seeded draw.

Source: formulas of openvino_genai, docs/reference/genai.md#sampling.
"""

from __future__ import annotations

import numpy as np

from genai_layer.sampling.processors import Logits

Probabilities = Logits
"""f32 [vocabulary]; 0 where a token is impossible. Filters leave the sum below 1."""


def softmax(logits: Logits, temperature: float = 1.0) -> Probabilities:
    """Return the probabilities of logits; a low temperature sharpens them."""
    shifted = np.exp((logits - logits.max()) / np.float32(temperature))
    return shifted / shifted.sum()


def min_p(probabilities: Probabilities, share: float) -> Probabilities:
    """Drop tokens below ``share`` of the highest probability; at least one token stays."""
    return np.where(probabilities >= share * probabilities.max(), probabilities, np.float32(0))


def top_p(probabilities: Probabilities, mass: float) -> Probabilities:
    """Keep the shortest run of likeliest tokens whose sum exceeds ``mass``; not renormalised."""
    order = np.argsort(-probabilities, kind="stable")
    sums = np.cumsum(probabilities[order], dtype=np.float32)
    exceeds = sums > np.float32(mass)
    count = int(exceeds.argmax()) + 1 if exceeds.any() else len(order)
    kept = np.zeros_like(probabilities)
    kept[order[:count]] = probabilities[order[:count]]
    return kept


class Draw:
    """Seeded draws by inverse transform; equal seeds draw equal indices.

    Args:
        seed: its low 32 bits count.

    Source: one 32-bit output of mt19937 per draw; docs/reference/genai.md#sampling,
    docs/reference/genai.md#sampling-examples.
    """

    def __init__(self, seed: int) -> None:
        self._twister = np.random.RandomState(seed % (1 << 32))

    def __call__(self, probabilities: Probabilities) -> int:
        """Draw an index; probabilities that filters left below a sum of 1 are scaled."""
        word = int(self._twister.randint(0, 1 << 32, dtype=np.uint32))
        sums = np.cumsum(probabilities, dtype=np.float64)
        target = word / 2.0**32 * float(sums[-1])
        index = int((sums <= target).sum())
        return min(index, int(np.flatnonzero(probabilities)[-1]))
