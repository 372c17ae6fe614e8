"""Keeps the k most likely tokens."""

from __future__ import annotations

import numpy as np

from genai_layer.sampling.processor import Logits, Processor, Said


def top_k(count: int) -> Processor:
    """Keep the ``count`` highest logits; of equal ones those with lower ids."""

    def process(logits: Logits, _said: Said) -> Logits:
        if count >= len(logits):
            return logits
        kept = np.argsort(-logits, kind="stable")[:count]
        filtered = np.full_like(logits, -np.inf)
        filtered[kept] = logits[kept]
        return filtered

    return process
