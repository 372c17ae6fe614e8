"""The likeliest tokens at a choice, beside the chosen one."""

from __future__ import annotations

import numpy as np

from genai_layer.sampling.processors import Logits

Alternatives = tuple[tuple[int, float], ...]
"""Ids and their log-probabilities, the likeliest first."""


def likeliest(logits: Logits, log_sum: float, count: int) -> Alternatives:
    """Return the ``count`` likeliest tokens; of equal ones, the smaller id first.

    Args:
        logits: f32 [vocabulary], of the model, without penalties and temperature.
        log_sum: logarithm of the sum of their powers.
        count: at least 1.
    """
    count = min(count, len(logits))
    least = np.partition(logits, -count)[-count]
    ids = np.flatnonzero(logits >= least)
    best = ids[np.argsort(-logits[ids], kind="stable")][:count]
    return tuple((int(token), float(logits[token] - log_sum)) for token in best)
