"""Beam search on tables of logits; tests/oracle/test_live_decoding.py has the real package."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genai_layer import GenerationFinishReason as Reason
from genai_layer.decoding.beams import repeating_tokens
from genai_layer.testing.memory_runtime import MemoryRequest

GREEDY_TRAP = np.log(
    np.array([[0, 0.6, 0.4, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 1], [0, 0, 0, 1]]) + 1e-9
)
"""Greedily 0 → 1 → 1 or 2; the likeliest text of two tokens is 0 → 2 → 3."""


def log_softmax(logits: np.ndarray) -> np.ndarray:
    return logits - np.log(np.exp(logits).sum())


def likeliest(table: np.ndarray, length: int) -> tuple[tuple[int, ...], float]:
    """Return the likeliest text of a length after token 0, found by trying all."""
    request_scores = {}
    for text in itertools.product(range(len(table)), repeat=length):
        request = MemoryRequest(table.astype(np.float32), 1 << 16)
        past, score = [0], 0.0
        for place, token in enumerate(text):
            request.infer(
                {
                    "input_ids": np.array([past[-1:]]),
                    "attention_mask": np.ones((1, len(past)), np.int64),
                    "position_ids": np.array([[place]]),
                    "beam_idx": np.zeros(1, np.int32),
                }
            )
            score += log_softmax(request.get_tensor("logits").data[0, -1])[token]
            past.append(token)
        request_scores[text] = float(score)
    best = max(request_scores, key=request_scores.__getitem__)
    return best, request_scores[best]


def test_beams_find_a_likelier_text_than_greedy_decoding(decodes) -> None:
    (greedy,) = decodes(GREEDY_TRAP, max_new_tokens=2)
    (best,) = decodes(GREEDY_TRAP, max_new_tokens=2, num_beams=2)
    assert greedy.tokens[0] == 1
    assert (best.tokens, best.text) == ([2, 3], "cd")


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1 << 32), st.integers(1, 3))
def test_as_many_beams_as_texts_find_the_likeliest_one(decodes, seed, length) -> None:
    table = np.random.default_rng(seed).normal(size=(4, 4)) * 3
    text, score = likeliest(table, length)
    (best,) = decodes(table, max_new_tokens=length, num_beams=64)
    assert tuple(best.tokens) == text
    assert best.score == pytest.approx(score / length, abs=1e-3)


def test_texts_are_sorted_by_score_and_differ(decodes) -> None:
    table = np.random.default_rng(3).normal(size=(9, 9)) * 2
    found = decodes(table, max_new_tokens=5, num_beams=6, num_return_sequences=6)
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert len({tuple(one.tokens) for one in found}) == 6
    assert {one.finish_reason for one in found} == {Reason.LENGTH}


def test_groups_differ_by_the_penalty(decodes) -> None:
    table = np.zeros((6, 6))
    table[:, 1] = 5.0
    parameters = {"num_beams": 3, "num_beam_groups": 3, "num_return_sequences": 3}
    found = decodes(table, max_new_tokens=1, diversity_penalty=9.0, **parameters)
    assert len({one.tokens[0] for one in found}) == 3
    found = decodes(table, max_new_tokens=1, diversity_penalty=0.5, **parameters)
    assert {one.tokens[0] for one in found} == {1}


LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("penalty", [-LARGEST, -1e38, -100.0, 1e-46, 100.0, 1e38, LARGEST])
@pytest.mark.parametrize("diversity", [-LARGEST, -1e38, 1e-46, 1e38, LARGEST])
def test_extreme_penalties_leave_finite_scores(decodes, penalty, diversity) -> None:
    table = np.random.default_rng(3).normal(size=(9, 9)) * 2
    groups = {"num_beams": 4, "num_beam_groups": 2, "num_return_sequences": 4}
    limits = {"max_new_tokens": 5, "stop_token_ids": {2}}
    found = decodes(table, length_penalty=penalty, diversity_penalty=diversity, **groups, **limits)
    assert np.isfinite([one.score for one in found]).all()


def test_a_stop_token_completes_a_text(decodes) -> None:
    found = decodes(
        GREEDY_TRAP, max_new_tokens=9, num_beams=2, stop_token_ids={3}, length_penalty=0.0
    )
    assert (found[0].tokens, found[0].finish_reason) == ([2, 3], Reason.STOP)


def test_min_new_tokens_defers_stop_tokens(decodes) -> None:
    found = decodes(
        GREEDY_TRAP, max_new_tokens=9, num_beams=2, stop_token_ids={3}, min_new_tokens=4
    )
    assert len(found[0].tokens) >= 4


def test_a_stop_string_completes_a_text(decodes) -> None:
    table = np.zeros((6, 6))
    for token in range(5):
        table[token, token + 1] = 9.0
    found = decodes(table, max_new_tokens=5, num_beams=2, stop_strings={"de"})
    assert (found[0].text, found[0].finish_reason) == ("bc", Reason.STOP)


def test_a_full_cache_ends_all_beams(decodes) -> None:
    found = decodes(GREEDY_TRAP, capacity=2, max_new_tokens=9, num_beams=2)
    assert (len(found[0].tokens), found[0].finish_reason) == (2, Reason.CAPACITY)


@pytest.mark.parametrize(
    ("ids", "size", "expected"),
    [
        ([1, 2, 3, 1, 2], 3, [3]),
        ([1, 2, 1, 3, 1], 2, [2, 3]),
        ([5, 6], 1, [5, 6]),
        ([5], 1, []),
        ([1, 2, 3], 4, []),
        ([1, 2, 3, 4], 4, []),
        ([1, 2, 3], (1 << 64) - 1, []),
    ],
)
def test_tokens_that_repeat_a_run(ids, size, expected) -> None:
    assert sorted(repeating_tokens(ids, size).tolist()) == expected


def test_no_run_of_tokens_repeats(decodes) -> None:
    table = np.random.default_rng(5).normal(size=(5, 5)) * 4
    (best,) = decodes(table, max_new_tokens=12, num_beams=3, no_repeat_ngram_size=2)
    pairs = list(itertools.pairwise([0, *best.tokens]))
    assert len(pairs) == len(set(pairs))
