"""Draws a token by inverse transform, with a seeded Mersenne Twister.

Source: one 32-bit output of mt19937 per draw; fact sheet genai §b.3, §d.2 case 19.
"""

from __future__ import annotations

import numpy as np

from genai_layer.sampling.temperature import Probabilities


class Draw:
    """A source of draws; equal seeds give equal draws.

    Args:
        seed: 0 to 2**32 - 1.
    """

    def __init__(self, seed: int) -> None:
        self._twister = np.random.RandomState(seed)

    def __call__(self, probabilities: Probabilities) -> int:
        """Draw an index; what is left of 1 by filters is scaled away."""
        word = int(self._twister.randint(0, 1 << 32, dtype=np.uint32))
        sums = np.cumsum(probabilities, dtype=np.float64)
        target = word / 2.0**32 * float(sums[-1])
        index = int((sums <= target).sum())
        return min(index, int(np.flatnonzero(probabilities)[-1]))
