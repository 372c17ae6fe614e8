"""Candidates of a draw: top-k, softmax, min-p and top-p; the draw; the score that a model gives.

A seeded draw goes through the candidates of top_k in the order in which the C++ standard library's
heap holds them, so the heap is followed element by element. Python's heapq moves elements as
libstdc++ does: a hole sinks to a leaf, always to the smaller child, of equal ones to the right one;
then the last element rises from there.

Source: formulas and order of openvino_genai, docs/reference/genai.md#sampling. Sums are f32 from
the first element to the last, as there, so that a seed draws the same tokens. The algorithms of
libstdc++'s push_heap, pop_heap and make_heap, whose results the tests compare with those of
openvino_genai.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import compress

import numpy as np
import numpy.typing as npt

from genai_layer.sampling.processors import Logits
from genai_layer.sampling.running_sums import AsGiven, Falling, Place, RunningSums

_FIRST_SPAN = 1024


def largest_in_heap_order(values: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.int64]:
    """Return the places of the largest values, as a heap with the smallest on top holds them.

    Args:
        values: f32 [n].
        count: number of places, at least 1 and less than n.
    """
    visited, places = values[:count].tolist(), [np.arange(count)]
    heap = visited.copy()
    heapify(heap)
    begin, span = count, max(_FIRST_SPAN, count)
    while begin < len(values):
        # A span has a few values above the smallest one kept before it; only these are visited.
        above = np.flatnonzero(values[begin : begin + span] > heap[0]) + begin
        found = values[above].tolist()
        for value in found:
            if value > heap[0]:
                heappop(heap)
                heappush(heap, value)
        visited += found
        places.append(above)
        begin, span = begin + span, 2 * span
    every = np.concatenate(places)
    high = values[every] >= heap[0]
    return every[high][_positions(heap, [*compress(visited, high.tolist())])]


def _positions(numbers: list[float], among: list[float]) -> npt.NDArray[np.int64]:
    """Return the positions of numbers in a list, by the identity of each, as some are equal."""
    objects, wanted = (np.fromiter(map(id, of), np.int64) for of in (among, numbers))
    order = objects.argsort()
    return order[objects[order].searchsorted(wanted)]


@cache
def _ids(count: int) -> npt.NDArray[np.int64]:
    ids = np.arange(count)
    ids.setflags(write=False)
    return ids


@dataclass(frozen=True, slots=True)
class Candidates:
    """Tokens in the order in which a draw goes through them."""

    ids: npt.NDArray[np.int64]
    values: npt.NDArray[np.float32]
    """Logits, or after ``softmax`` weights, whose sum filters leave below 1."""

    @staticmethod
    def of(logits: Logits) -> Candidates:
        """Return all tokens, in the order of their ids."""
        return Candidates(_ids(len(logits)), logits)

    def kept(self, places: npt.NDArray[np.int64]) -> Candidates:
        """Return the candidates at some places."""
        return Candidates(self.ids[places], self.values[places])

    def few(self, chosen: npt.NDArray[np.bool_]) -> Candidates | None:
        """Return the chosen candidates; None if more than half are chosen.

        Args:
            chosen: bool [n].
        """
        if 2 * np.count_nonzero(chosen) > len(chosen):
            return None
        return self.kept(np.flatnonzero(chosen))


def top_k(candidates: Candidates, count: int) -> Candidates:
    """Keep the ``count`` highest logits, in the order in which a heap holds them."""
    if not 0 < count < len(candidates.ids):
        return candidates
    return candidates.kept(largest_in_heap_order(candidates.values, count))


_LARGEST = np.finfo(np.float32).max


def softmax(candidates: Candidates, temperature: float = 1.0) -> Candidates:
    """Return candidates with their probabilities; a low temperature sharpens them.

    Below 2.9e-39, the reciprocal exceeds f32: the candidates of the highest logit share all of the
    probability, which is the limit for 0. openvino_genai then draws from NaN.
    """
    logits = candidates.values
    with np.errstate(over="ignore"):
        scale = np.minimum(np.float32(1) / np.float32(temperature), _LARGEST)
        weights = logits - logits.max()
        weights *= scale
    np.exp(weights, out=weights)
    weights /= RunningSums(AsGiven(weights)).total
    return Candidates(candidates.ids, weights)


def min_p(candidates: Candidates, share: float) -> Candidates:
    """Drop tokens below ``share`` of the highest probability; at least one token stays.

    If only a few are dropped, they stay with weight 0, with which none is drawn.
    """
    weights = candidates.values
    likely = weights >= np.float32(share) * weights.max()
    if few := candidates.few(likely):
        return few
    return Candidates(candidates.ids, np.where(likely, weights, np.float32(0)))


@dataclass(frozen=True, slots=True)
class Lots:
    """Candidates in the order in which a draw goes through them."""

    ids: npt.NDArray[np.int64]
    sums: RunningSums
    """Running sums of their weights."""
    end: Place | None = None
    """The last place that may be drawn; None if all may."""

    @property
    def total(self) -> np.float32:
        """Sum of the weights that may be drawn."""
        return self.sums.total if self.end is None else self.end.sum

    def drawn(self, share: np.float32) -> Place:
        """Return the first place whose sum exceeds a share, below 1, of the total."""
        place = self.sums.first_above(float(self.total * share))
        if place is None:  # by rounding; a filtered token, of weight 0, is never drawn
            return self.end or self.sums.last()
        return self.end if self.end and place.rank > self.end.rank else place


def all_of(candidates: Candidates) -> Lots:
    """Return all candidates, in their order."""
    return Lots(candidates.ids, RunningSums(AsGiven(candidates.values)))


def top_p(candidates: Candidates, mass: float) -> Lots:
    """Keep the shortest run of likeliest tokens whose sum exceeds ``mass``, likeliest first."""
    weights = candidates.values
    likely = candidates.few(weights >= _level(weights, mass))
    lots = likely and _falling(likely, mass)
    return lots if lots and lots.end else _falling(candidates, mass)


def _falling(candidates: Candidates, mass: float) -> Lots:
    """Return candidates, likeliest first; the last one is the first whose sum exceeds ``mass``."""
    weights = candidates.values
    equal = weights.min() == weights.max()
    sums = RunningSums(AsGiven(weights) if equal else Falling(weights))
    return Lots(candidates.ids, sums, sums.first_above(mass))


_SAMPLE = 1024
_SURE = 0.7
"""Share of the weights beyond ``mass`` that are dropped; less than 1, as a sample is not exact."""


def _level(weights: npt.NDArray[np.float32], mass: float) -> np.float32:
    """Return a level such that weights not below it probably exceed ``mass`` in sum."""
    step = max(len(weights) // _SAMPLE, 1)
    sample = np.sort(weights[::step])
    smaller = step * sample[:-1].cumsum(dtype=np.float64)
    return sample[smaller.searchsorted(_SURE * (float(weights.sum()) - mass))]


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

    def __call__(self, lots: Lots) -> tuple[int, float]:
        """Draw a candidate; weights that filters left below a sum of 1 are scaled.

        Returns:
            The token, and its log-probability among the candidates.
        """
        word = int.from_bytes(self._twister.bytes(4), "little")
        share = min(np.float32(word) / _WORDS, _BELOW_ONE)
        place = lots.drawn(share)
        token = int(lots.ids[lots.sums.order.index(place)])
        return token, float(np.log(place.weight) - np.log(lots.total))


Alternatives = tuple[tuple[int, float], ...]
"""Ids and their log-probabilities, the likeliest first."""


def scored(logits: Logits, token: int, count: int) -> tuple[float, Alternatives]:
    """Return a token's log-probability, and the ``count`` likeliest tokens at its place.

    Args:
        logits: f32 [vocabulary], of the model, without penalties and temperature.
        token: the token.
        count: number of alternatives, or 0.
    """
    highest = float(logits.max())
    log_sum = highest + float(np.log(np.exp(logits - highest, dtype=np.float64).sum()))
    others = _likeliest(logits, log_sum, count) if count else ()
    return float(logits[token] - log_sum), others


def _likeliest(logits: Logits, log_sum: float, count: int) -> Alternatives:
    """Return the ``count`` likeliest tokens; of equal ones, the smaller id first.

    Args:
        logits: f32 [vocabulary].
        log_sum: logarithm of the sum of their powers.
        count: at least 1.
    """
    best = likeliest(logits, count)
    return tuple((int(token), float(logits[token] - log_sum)) for token in best)


def likeliest(logits: Logits, count: int) -> npt.NDArray[np.int64]:
    """Return the ids of the ``count`` highest logits, or of all, the highest first.

    Of equal ones, the smaller id is first.
    """
    count = min(count, len(logits))
    width = max(len(logits) // max(8 * count, _FIRST_SPAN), 1)
    maxima = np.maximum.reduceat(logits, np.arange(0, len(logits), width))
    level = np.partition(maxima, -count)[-count]  # at least count logits are as high
    higher = np.flatnonzero(logits > level)
    equal = np.flatnonzero(logits == level)[: max(count - len(higher), 0)]
    ids = np.concatenate((higher, equal))
    return ids[np.argsort(-logits[ids], kind="stable")][:count]
