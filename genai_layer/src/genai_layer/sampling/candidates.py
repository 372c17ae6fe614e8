"""Candidates of a draw: top-k, softmax, min-p and top-p; the draw; the likeliest tokens beside it.

Source: formulas and order of openvino_genai, docs/reference/genai.md#sampling. Sums are f32 from
the first element to the last, as there, so that a seed draws the same tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from genai_layer.sampling.heap_order import largest_in_heap_order
from genai_layer.sampling.processors import Logits


@dataclass(frozen=True, slots=True)
class Candidates:
    """Tokens in the order in which a draw goes through them."""

    ids: npt.NDArray[np.int64]
    values: npt.NDArray[np.float32]
    """Logits, or after ``softmax`` weights, whose sum filters leave below 1."""

    @staticmethod
    def of(logits: Logits) -> Candidates:
        """Return all tokens, in the order of their ids."""
        return Candidates(np.arange(len(logits)), logits)

    def kept(self, places: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Candidates:
        """Return the candidates at some places."""
        return Candidates(self.ids[places], self.values[places])


def top_k(candidates: Candidates, count: int) -> Candidates:
    """Keep the ``count`` highest logits, in the order in which a heap holds them."""
    if not 0 < count < len(candidates.ids):
        return candidates
    return candidates.kept(largest_in_heap_order(candidates.values, count))


def softmax(candidates: Candidates, temperature: float = 1.0) -> Candidates:
    """Return candidates with their probabilities; a low temperature sharpens them."""
    logits = candidates.values
    weights = np.exp((logits - logits.max()) * (np.float32(1) / np.float32(temperature)))
    return Candidates(candidates.ids, weights / ordered_sums(weights)[-1])


def min_p(candidates: Candidates, share: float) -> Candidates:
    """Drop tokens below ``share`` of the highest probability; at least one token stays."""
    weights = candidates.values
    return candidates.kept(weights >= np.float32(share) * weights.max())


def top_p(candidates: Candidates, mass: float) -> Candidates:
    """Keep the shortest run of likeliest tokens whose sum exceeds ``mass``, likeliest first."""
    ordered = candidates.kept(np.argsort(-candidates.values, kind="stable"))
    exceeds = ordered_sums(ordered.values).astype(np.float64) > mass
    count = int(exceeds.argmax()) + 1 if exceeds.any() else len(exceeds)
    return ordered.kept(np.arange(count))


def ordered_sums(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the running sums, each rounded to f32."""
    return np.cumsum(values, dtype=np.float32)


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
