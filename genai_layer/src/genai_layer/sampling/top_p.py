"""Keeps the likeliest tokens that together have a given probability."""

from __future__ import annotations

import numpy as np

from genai_layer.sampling.temperature import Probabilities


def top_p(probabilities: Probabilities, mass: float) -> Probabilities:
    """Keep the shortest run of likeliest tokens whose sum exceeds ``mass``; not renormalised."""
    order = np.argsort(-probabilities, kind="stable")
    sums = np.cumsum(probabilities[order], dtype=np.float32)
    exceeds = sums > np.float32(mass)
    count = int(exceeds.argmax()) + 1 if exceeds.any() else len(order)
    kept = np.zeros_like(probabilities)
    kept[order[:count]] = probabilities[order[:count]]
    return kept
