"""Drops tokens that are far less likely than the likeliest."""

from __future__ import annotations

import numpy as np

from genai_layer.sampling.temperature import Probabilities


def min_p(probabilities: Probabilities, share: float) -> Probabilities:
    """Drop what is below ``share`` of the highest probability; at least one token stays."""
    return np.where(probabilities >= share * probabilities.max(), probabilities, np.float32(0))
