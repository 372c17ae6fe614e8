"""Seeded draw of a token from weighted candidates."""

from __future__ import annotations

import numpy as np

from genai_layer.sampling.candidates import Candidates, ordered_sums

_WORDS = np.float32(1 << 32)
_BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))


class Draw:
    """Seeded draws by inverse transform; equal seeds draw equal tokens.

    Args:
        seed: its low 32 bits count.

    Source: one 32-bit output of mt19937 per draw; docs/reference/genai.md#sampling,
    docs/reference/genai.md#sampling-examples.
    """

    def __init__(self, seed: int) -> None:
        self._twister = np.random.RandomState(seed % (1 << 32))

    def __call__(self, candidates: Candidates) -> tuple[int, float]:
        """Draw a candidate; weights that filters left below a sum of 1 are scaled.

        Returns:
            The token, and its log-probability among the candidates.
        """
        word = int.from_bytes(self._twister.bytes(4), "little")
        share = min(np.float32(word) / _WORDS, _BELOW_ONE)
        sums = ordered_sums(candidates.values)
        total = sums[-1]
        place = int(np.count_nonzero(sums <= total * share))
        if place == len(sums):  # by rounding; a filtered token, of weight 0, is never drawn
            place = int(np.flatnonzero(candidates.values)[-1])
        weight = candidates.values[place]
        return int(candidates.ids[place]), float(np.log(weight) - np.log(total))
