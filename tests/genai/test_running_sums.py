"""Running sums and draws of large vocabularies, compared with sums and sorts of all weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_layer.generation_config import GenerationConfig
from genai_layer.sampling.candidates import Candidates, softmax, top_p
from genai_layer.sampling.processors import TokenHistory
from genai_layer.sampling.running_sums import AsGiven, Falling, RunningSums
from genai_layer.sampling.sampler import Sampler

KINDS = {
    "flat": lambda random, count: random.standard_normal(count),
    "in one binade": lambda random, count: random.random(count),
    "peaked": lambda random, count: 20 * random.random(count) ** 99,
    "equal": lambda random, count: np.ones(count),
    "equal in groups": lambda random, count: random.integers(0, 9, count) / 4,
    "of few bits": lambda random, count: np.log(1 + random.integers(0, 64, count)),
    "masked": lambda random, count: np.log((random.random(count) > 0.97) | (np.arange(count) == 0)),
    "one possible": lambda random, count: np.log(np.arange(count) == count // 2),
}
"""Logits of a number of tokens."""


def logits_of(kind: str, count: int, seed: int) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return KINDS[kind](np.random.default_rng(seed), count).astype(np.float32)


def exponentials(logits: np.ndarray) -> np.ndarray:
    return np.exp(logits - logits.max())


def plain_sums(weights: np.ndarray) -> np.ndarray:
    return np.cumsum(weights, dtype=np.float32)


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(KINDS)),
    st.one_of(st.integers(1, 40), st.integers(8193, 99000)),
    st.integers(0, 99),
    st.lists(st.floats(0, 1.01), min_size=1, max_size=4),
    st.booleans(),
)
def test_sums_and_places_are_those_of_one_weight_after_another(
    kind, count, seed, shares, falling
) -> None:
    weights = exponentials(logits_of(kind, count, seed))
    if seed % 2:
        weights = weights / plain_sums(weights)[-1]
    order = np.argsort(-weights, stable=True) if falling else np.arange(count)
    expected = plain_sums(weights[order])
    sums = RunningSums(Falling(weights) if falling else AsGiven(weights))
    for share in shares:
        limit = float(np.float32(share) * expected[-1])
        place, rank = sums.first_above(limit), int(np.count_nonzero(expected <= limit))
        if rank == count:
            assert place is None
            continue
        assert (place.rank, place.sum) == (rank, expected[rank])
        assert sums.order.index(place) == order[rank]
    assert sums.total == expected[-1]
    last = sums.last()
    assert sums.order.index(last) == order[np.flatnonzero(weights[order])[-1]]


@pytest.mark.parametrize("order", [AsGiven, Falling])
def test_weights_between_two_multiples_are_rounded_to_the_even_one(order) -> None:
    """Weights of half a unit count every second time; they are many, or few among others."""
    half = np.spacing(np.float32(1)) / 2
    few = np.where(np.arange(20_000) % 1000 == 7, half, 7 * half + np.float32(2**-40))
    for small in (np.full(20_000, half), 3 * np.full(20_000, half), few):
        weights = np.array([1, *small], np.float32)
        assert RunningSums(order(weights)).total == plain_sums(np.sort(weights)[::-1])[-1]


class _Counting(Falling):
    sorted = 0

    def ordered(self, first, end):
        weights = super().ordered(first, end)
        self.sorted += len(weights)
        return weights


def test_few_weights_of_a_large_vocabulary_are_sorted() -> None:
    order = _Counting(exponentials(logits_of("flat", 200_000, 1)) / np.float32(300_000))
    sums = RunningSums(order)
    sums.first_above(0.9)
    sums.first_above(0.5)
    assert order.sorted < 20_000


def test_top_p_orders_the_likeliest_of_a_large_vocabulary_alone() -> None:
    probabilities = softmax(Candidates.of(3 * logits_of("flat", 200_000, 1)))
    assert len(top_p(probabilities, 0.9).ids) < 20_000


def test_top_p_keeps_its_mass_where_a_sample_does_not_show_the_likeliest() -> None:
    probabilities = softmax(Candidates.of(logits_of("peaked", 50_000, 5)))
    assert top_p(probabilities, 0.9).total > 0.9


def plain_draw(logits, word, temperature, least, mass) -> tuple[int, float]:
    """Draw with all tokens sorted; docs/reference/genai.md#sampling."""
    weights = np.exp((logits - logits.max()) * (np.float32(1) / np.float32(temperature)))
    weights = weights / plain_sums(weights)[-1]
    ids = np.flatnonzero(weights >= np.float32(least) * weights.max())
    if mass < 1:
        ids = ids[np.argsort(-weights[ids], stable=True)]
        above = plain_sums(weights[ids]).astype(np.float64) > mass
        ids = ids[: int(above.argmax()) + 1] if above.any() else ids
    sums = plain_sums(weights[ids])
    share = np.float32(word) / np.float32(1 << 32)
    place = int(np.count_nonzero(sums <= sums[-1] * share))
    return int(ids[place]), float(np.log(weights[ids[place]]) - np.log(sums[-1]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("temperature", "least", "mass"),
    [(1.0, 0.0, 1.0), (0.7, 0.0, 0.9), (1.5, 0.0, 0.999), (1.0, 1e-6, 0.5), (2.0, 0.3, 1.0)],
)
def test_draws_and_scores_are_those_of_sorted_tokens(kind, temperature, least, mass) -> None:
    logits = logits_of(kind, 50_000, 5)
    config = GenerationConfig(
        max_new_tokens=9,
        do_sample=True,
        rng_seed=7,
        temperature=temperature,
        min_p=least,
        top_p=mass,
    )
    sampler, twister = Sampler(config), np.random.RandomState(7)
    score = 0.0
    for _ in range(3):
        word = int.from_bytes(twister.bytes(4), "little")
        token, log_probability = plain_draw(logits, word, temperature, least, mass)
        score += log_probability
        assert sampler.next_token(logits, TokenHistory([])) == token
        assert sampler.score == score
