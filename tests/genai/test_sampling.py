"""Sampling, compared to hand-computed probabilities (docs/reference/genai.md#sampling-examples)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from genai_layer.generation_config import GenerationConfig
from genai_layer.sampling.candidates import (
    Candidates,
    Draw,
    all_of,
    largest_in_heap_order,
    likeliest,
    min_p,
    softmax,
    top_k,
    top_p,
)
from genai_layer.sampling.processors import (
    TokenHistory,
    frequency_penalty,
    logit_bias,
    min_new_tokens,
    presence_penalty,
    repetition_penalty,
)
from genai_layer.sampling.sampler import Sampler

NOTHING = TokenHistory([])


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def possible(logits: np.ndarray) -> set[int]:
    return set(np.flatnonzero(np.isfinite(logits)).tolist())


def candidates(*values: float) -> Candidates:
    return Candidates.of(f32(*values))


def choose(logits: np.ndarray, history: TokenHistory = NOTHING, **config: object) -> int:
    return Sampler(GenerationConfig(max_new_tokens=9, **config)).next_token(logits, history)


def test_greedy_returns_the_first_of_the_highest_logits() -> None:
    assert choose(f32(1, 3, 3, 2)) == 1


def test_greedy_scores_are_zero_or_the_raw_log_probabilities() -> None:
    logits = f32(1, 2, 3)
    plain = Sampler(GenerationConfig(max_new_tokens=2))
    raw = Sampler(GenerationConfig(max_new_tokens=2, logprobs=1, repetition_penalty=2.0))
    for sampler in (plain, raw):
        sampler.next_token(logits, NOTHING)
    assert plain.score == 0.0
    assert raw.score == pytest.approx(np.log(0.66524), abs=1e-4)


def test_alternatives_are_the_likeliest_tokens_of_the_model() -> None:
    logits = f32(2, 5, 2, 1)
    config = GenerationConfig(max_new_tokens=2, logprobs=3, repetition_penalty=9.0)
    sampler = Sampler(config)
    assert sampler.next_token(logits, TokenHistory([1])) == 0
    total = np.log(np.exp(logits).sum())
    assert [token for token, _ in sampler.alternatives] == [1, 0, 2]
    log_probabilities = [value for _, value in sampler.alternatives]
    assert log_probabilities == pytest.approx([5 - total, 2 - total, 2 - total])
    assert sampler.score == pytest.approx(2 - total)


@pytest.mark.parametrize(
    ("logits", "temperature", "expected"),
    [((1, 2, 3), 1.0, (0.0900, 0.2447, 0.6652)), ((3, 2, 1), 2.0, (0.5065, 0.3072, 0.1863))],
)
def test_temperature(logits, temperature, expected) -> None:
    assert softmax(candidates(*logits), temperature).values == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("temperature", [1e-3, 1e-30, 1e-38, 3e-39, 2.9e-39, 1e-45])
def test_a_tiny_temperature_is_greedy(temperature: float) -> None:
    logits = np.array([-3e38, 2, 3, -np.inf, 3], np.float32)
    weights = softmax(Candidates.of(logits), temperature).values
    assert weights.tolist() == [0, 0, 0.5, 0, 0.5]


@pytest.mark.parametrize(("mass", "expected"), [(0.2, {2}), (0.9, {1, 2}), (0.95, {0, 1, 2})])
def test_top_p_keeps_the_shortest_run_above_the_mass(mass, expected) -> None:
    lots = top_p(softmax(candidates(1, 2, 3)), mass)
    places = {lots.drawn(share) for share in np.linspace(0, 0.999, 99, dtype=np.float32)}
    assert {int(lots.ids[lots.sums.order.index(place)]) for place in places} == expected


@pytest.mark.parametrize(("share", "expected"), [(0.0, 4), (0.1, 3), (0.4, 1)])
def test_min_p_keeps_tokens_not_far_below_the_likeliest(share, expected) -> None:
    filtered = min_p(candidates(0.032, 0.087, 0.644, 0.237), share)
    assert np.count_nonzero(filtered.values) == expected


@pytest.mark.parametrize(("count", "expected"), [(1, {3}), (2, {3, 1}), (9, {0, 1, 2, 3})])
def test_top_k(count, expected) -> None:
    assert set(top_k(candidates(1, 3, 2, 4), count).ids) == expected


def test_top_k_of_equal_logits_prefers_lower_ids() -> None:
    assert set(top_k(candidates(5, 5, 5), 2).ids) == {0, 1}


def test_top_k_keeps_the_order_of_a_heap() -> None:
    """A draw goes through the candidates in this order; docs/reference/genai.md#sampling."""
    assert top_k(candidates(4, 1, 3, 5, 2), 3).ids.tolist() == [2, 0, 3]


def plain_heap_order(values: np.ndarray, count: int) -> list[int]:
    """Return the places that make_heap of the first, pop_heap and push_heap leave in libstdc++."""
    heap = list(range(count))

    def rise(hole: int, top: int, place: int) -> None:
        while hole > top and values[heap[parent := (hole - 1) // 2]] > values[place]:
            heap[hole], hole = heap[parent], parent
        heap[hole] = place

    def sink(top: int, length: int, place: int) -> None:
        hole = top
        while (child := 2 * hole + 2) <= length:
            if child == length or values[heap[child]] > values[heap[child - 1]]:
                child -= 1
            heap[hole], hole = heap[child], child
        rise(hole, top, place)

    for top in reversed(range(count // 2)):
        sink(top, count, heap[top])
    for place in range(count, len(values)):
        if values[place] > values[heap[0]]:
            sink(0, count - 1, heap[-1])
            rise(count - 1, 0, place)
    return heap


@given(arrays(np.float32, st.integers(2, 3000), elements=st.integers(-99, 99)), st.data())
def test_heap_order_is_that_of_a_heap_filled_one_by_one(values, data) -> None:
    count = data.draw(st.integers(1, len(values) - 1))
    assert largest_in_heap_order(values, count).tolist() == plain_heap_order(values, count)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"top_p": 0.6}, {0}),
        ({"top_p": 0.7}, {0, 1}),
        ({"min_p": 0.1}, {0, 1, 2}),
        ({"min_p": 0.4, "temperature": 2.0}, {0, 1}),
        ({"top_k": 3, "top_p": 0.8}, {0, 1}),
        ({"top_k": 0, "temperature": 9.0}, {0, 1, 2, 3, 4}),
    ],
)
def test_combined_filters_keep_exactly_these_tokens(config, expected) -> None:
    logits = f32(2, 1, 0, -1, -3)
    seen = {choose(logits, do_sample=True, rng_seed=seed, **config) for seed in range(400)}
    assert seen == expected


def test_repetition_divides_positive_logits_once_for_prompt_and_answer() -> None:
    processed = repetition_penalty(1.2)(f32(1, 2, 3), TokenHistory([2, 2], [0]))
    assert processed == pytest.approx([0.8333, 2, 2.5], abs=1e-4)
    assert repetition_penalty(2.0)(f32(-1, -2), TokenHistory([1]))[1] == -4


def test_presence_counts_generated_tokens_only_and_once() -> None:
    processed = presence_penalty(0.5)(f32(1, 2, 3), TokenHistory([0], [2, 2]))
    assert processed.tolist() == [1, 2, 2.5]


def test_presence_adds_to_negative_logits_as_openvino_genai_does() -> None:
    assert presence_penalty(1.0)(f32(-3, -5), TokenHistory([], [0])).tolist() == [-2, -5]


def test_frequency_scales_with_the_count() -> None:
    processed = frequency_penalty(0.5)(f32(1, 2, 3), TokenHistory([0], [2, 2, 1]))
    assert processed.tolist() == [1, 1.5, 2]


def test_a_bias_is_added_before_penalties() -> None:
    assert logit_bias({1: 2.5, 9: 1.0})(f32(1, -1, 3), NOTHING).tolist() == [1, 1.5, 3]
    assert choose(f32(4, 1), logit_bias={1: 4}) == 1
    said = TokenHistory([], [1])
    assert choose(f32(4, 1), said, logit_bias={1: 4}, repetition_penalty=2.0) == 0  # 5 / 2


def test_a_bias_leaves_impossible_tokens_impossible() -> None:
    assert possible(logit_bias({0: 100.0})(f32(-np.inf, 1), NOTHING)) == {1}


def test_min_new_tokens_forbids_every_stop_token_and_then_releases_it() -> None:
    process = min_new_tokens(2, {0, 2, 99})
    assert possible(process(f32(1, 2, 3), TokenHistory([], [1]))) == {1}
    assert possible(process(f32(1, 2, 3), TokenHistory([], [1, 1]))) == {0, 1, 2}


@given(arrays(np.float32, st.integers(1, 3000), elements=st.integers(-9, 9)), st.integers(1, 99))
def test_the_likeliest_are_the_first_of_all_in_falling_order(logits, count) -> None:
    logits[logits == 9] = -np.inf
    assert likeliest(logits, count).tolist() == np.argsort(-logits, stable=True)[:count].tolist()


@given(st.lists(st.integers(0, 200)), st.lists(st.lists(st.integers(0, 200)), max_size=4))
def test_a_history_counts_the_tokens_it_gains(prompt, parts) -> None:
    history = TokenHistory(prompt)
    for part in parts:
        history.generated.extend(part)
        for tally, tokens in (
            (history.tally(), [*prompt, *history.generated]),
            (history.generated_tally(), history.generated),
        ):
            assert dict(zip(tally.ids.tolist(), tally.counts.tolist(), strict=True)) == Counter(
                tokens
            )


def test_a_draw_is_one_32_bit_output_of_the_mersenne_twister() -> None:
    words = [2357136044, 2546248239, 3071714933]  # mt19937 seeded with 0
    equal = all_of(Candidates.of(np.full(1000, 0.5, np.float32)))
    draw = Draw(0)
    assert [draw(equal)[0] for _ in words] == [word * 1000 >> 32 for word in words]


def test_equal_seeds_draw_equal_tokens_and_other_seeds_differ() -> None:
    logits = np.zeros(50, np.float32)

    def sequence(seed: int) -> tuple[int, ...]:
        sampler = Sampler(GenerationConfig(max_new_tokens=9, do_sample=True, rng_seed=seed))
        return tuple(sampler.next_token(logits, NOTHING) for _ in range(12))

    assert sequence(42) == sequence(42)
    assert len({sequence(seed) for seed in (42, 123, 777, 2024)}) == 4
    assert sequence(42) == sequence((1 << 62) + 42), "the low 32 bits count"


def test_sampled_frequencies_are_the_probabilities() -> None:
    weighted = candidates(0.5, 0.0, 0.3, 0.2)
    draw = Draw(7)
    counts = np.bincount([draw(all_of(weighted))[0] for _ in range(20_000)], minlength=4)
    assert counts / 20_000 == pytest.approx(weighted.values, abs=0.015)


finite = arrays(np.float32, st.integers(2, 40), elements=st.floats(-30, 30, width=32))


@given(finite, st.integers(0, 5), st.floats(0.05, 1), st.floats(0, 0.99), st.floats(0.1, 5))
def test_filters_always_keep_a_token(logits, k, p, share, temperature) -> None:
    config = {"top_k": k, "top_p": p, "min_p": share, "temperature": temperature}
    token = choose(logits, do_sample=True, **config)
    assert 0 <= token < len(logits)
    if k:
        assert logits[token] >= sorted(logits)[-min(k, len(logits))]


@given(finite)
def test_processors_do_not_change_their_argument(logits) -> None:
    before = logits.copy()
    history = TokenHistory([0, 1], [1])
    for step in (
        min_new_tokens(5, {0}),
        repetition_penalty(1.5),
        presence_penalty(1.0),
        frequency_penalty(1.0),
        logit_bias({0: 1.0}),
    ):
        step(logits, history)
        assert np.array_equal(logits, before)


LARGEST = float(np.finfo(np.float32).max)
EXTREMES = {
    "repetition_penalty": (1e-45, 1e-38, 3e-38, 1e30, LARGEST),
    "presence_penalty": (-2.0, 2.0),
    "frequency_penalty": (-2.0, 2.0),
    "logit_bias": ({0: -100.0, 4: 100.0}, {5: 1e-46}),
    "temperature": (1e-45, 1e-38, LARGEST),
    "top_p": (1e-46, 1e-38, 1.0),
    "min_p": (0.0, 1e-46, 1 - 2**-24),
}
"""Limits of the values that ``validate`` accepts, by field."""


@pytest.mark.filterwarnings("error")
@given(
    st.fixed_dictionaries({}, optional={n: st.sampled_from(v) for n, v in EXTREMES.items()}),
    arrays(np.float32, 6, elements=st.sampled_from([-np.inf, -LARGEST, -9, -1e-45, 0, 5, LARGEST])),
    st.booleans(),
)
def test_extreme_parameters_choose_possible_tokens_with_finite_scores(fields, logits, drawn):
    logits[0] = 5
    config = GenerationConfig(max_new_tokens=9, do_sample=drawn, rng_seed=3, **fields)
    config.validate()
    sampler, history = Sampler(config), TokenHistory([0, 1, 4], [4, 2, 3])
    for _ in range(3):
        token = sampler.next_token(logits, history)
        assert logits[token] > -np.inf
        assert np.isfinite(sampler.score)
        history.generated.append(token)


def test_a_tiny_repetition_penalty_raises_logits_to_the_limit_of_f32() -> None:
    penalised = repetition_penalty(1e-38)(f32(5, 3, 0, -1), TokenHistory([0, 2]))
    assert penalised.tolist() == [LARGEST, 3, 0, -1]
