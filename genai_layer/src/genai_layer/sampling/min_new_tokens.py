"""Makes stop tokens impossible until enough is said."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np

from genai_layer.sampling.processor import Logits, Processor, Said


def min_new_tokens(count: int, stop_token_ids: AbstractSet[int]) -> Processor:
    """Forbid stop tokens before ``count`` tokens are generated."""
    stops = np.array(sorted(stop_token_ids), np.int64)

    def process(logits: Logits, said: Said) -> Logits:
        if len(said.generated) >= count:
            return logits
        masked = logits.copy()
        masked[stops[stops < len(logits)]] = -np.inf
        return masked

    return process
