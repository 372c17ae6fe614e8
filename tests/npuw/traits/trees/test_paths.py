"""Random trees and accepted paths: logits are those of a conversation with the path alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .conftest import NOTHING, STATES, Talk, Tree, distance

MOST = 16
"""Maximum candidates of a step."""

WAYS: dict[str, dict[str, Any]] = {
    "chunks": {"NPUW_LLM_GENERATE_PYRAMID_STEPS": "48,80,128"},
    "whole": {
        "NPUW_LLM_PREFILL_HINT": "STATIC",
        "NPUW_LLM_GENERATE_PYRAMID_STEPS": "64,128",
        "NPUW_LLM_OPTIMIZE_V_TENSORS": "NO",
    },
    "transposed": {
        "NPUW_LLM_OPTIMIZE_V_TENSORS": "YES",
        "NPUW_LLM_PREFILL_ATTENTION_HINT": "STATIC",
        "NPUW_LLM_GENERATE_PYRAMID_STEPS": "48,128",
    },
    "in blocks": {
        "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES",
        "NPUW_LLM_GENERATE_PYRAMID_STEPS": "48,80,128",
    },
}


@dataclass(frozen=True)
class Round:
    """A tree, and the last candidate of its accepted path."""

    parents: list[int]
    node: int
    square: bool
    """True if the mask covers the candidates alone."""
    guesses: int
    """Number of first candidates that are read and rewound before, as drafts do."""


@st.composite
def rounds(draw: st.DrawFn) -> Round:
    count = draw(st.integers(1, MOST))
    parents = [-1, *(draw(st.integers(0, node - 1)) for node in range(1, count))]
    node = draw(st.integers(0, count - 1))
    return Round(parents, node, draw(st.booleans()), draw(st.integers(0, count - 1)))


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.integers(1, 64), st.lists(rounds(), min_size=1, max_size=5), st.integers(0, 1 << 32))
def test_tokens_after_an_accepted_path_depend_on_no_other_candidate(
    begin: Callable[..., Talk], way: str, prompt: int, told: list[Round], seed: int
) -> None:
    draw = np.random.default_rng(seed)
    talk, plain = begin(**WAYS[way]), begin(**WAYS[way])
    ids = draw.integers(10, 1000, prompt)
    assert np.array_equal(talk.tell(ids)["logits"], plain.tell(ids)["logits"])
    for one in told:
        tree, ids = Tree(one.parents), draw.integers(10, 1000, len(one.parents))
        path = tree.path(one.node)
        if talk.said + 2 * MOST > 64 + 64:
            break
        if one.guesses:
            talk.tell(ids[: one.guesses], tree=Tree(one.parents[: one.guesses]))
            talk.said -= one.guesses
        mask = tree.mask(0 if one.square else talk.said)
        found, expected = talk.tell(ids, tree=tree, mask=mask), plain.tell(ids[path])
        for name in ("logits", STATES):
            assert distance(found[name][:, path], expected[name]) <= 1e-5
        talk.accept(path, of=len(ids))
        assert talk.said == plain.said
    ours, theirs = talk.tell([7]), plain.tell([7])
    assert distance(ours["logits"], theirs["logits"]) <= 1e-5
    for row, expected in zip(talk.rows, plain.rows, strict=True):
        assert distance(row, expected) <= 1e-5


@pytest.mark.parametrize("way", ["chunks", "in blocks"])
def test_a_rewind_keeps_the_first_candidates_without_a_sampling_result(begin, way) -> None:
    """No rows move, as in a chain."""
    talk, plain = begin(**WAYS[way]), begin(**WAYS[way])
    for one in (talk, plain):
        one.tell(range(20, 50))
    talk.tell(range(60, 72))
    plain.tell(range(60, 65))
    talk.said -= 7
    assert distance(talk.tell([5])["logits"], plain.tell([5])["logits"]) <= 1e-5


def test_a_conversation_rewinds_exactly_to_any_accepted_token(begin) -> None:
    talk, plain = begin(**WAYS["chunks"]), begin(**WAYS["chunks"])
    ids, tree = np.arange(60, 70), Tree([-1, 0, 0, 1, 1, 2, 3, 4, 6, 6])
    path = tree.path(9)
    talk.tell(range(20, 50))
    talk.tell(ids, tree=tree)
    talk.accept(path, of=10)
    plain.tell(range(20, 50))
    plain.tell(ids[path])
    for back in (1, 2, 5, 20):
        talk.said = plain.said = 35 - back
        assert distance(talk.tell([5])["logits"], plain.tell([5])["logits"]) <= 1e-5


@pytest.mark.long
def test_a_long_text_continues_after_an_accepted_path(begin) -> None:
    """More tokens than a step takes are read as a prompt."""
    options = {"NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES"}
    talk, plain = begin(**options), begin(**options)
    for one in (talk, plain):
        one.tell(range(20, 40))
    talk.tell(range(60, 65), tree=Tree([-1, 0, 0, 1, 2]))
    talk.accept([0, 2, 4], of=5)
    plain.tell([60, 62, 64])
    for more in (range(100, 130), [7]):
        assert distance(talk.tell(more)["logits"], plain.tell(more)["logits"]) <= 1e-5


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["i8", "f8e4m3"])
def test_rows_of_8_bits_move_unchanged(begin, kind: str) -> None:
    talk = begin("draft", KV_CACHE_PRECISION=kind)
    draw = np.random.default_rng(2)
    hidden = draw.standard_normal((35, 96)).astype(np.float32)
    talk.tell(range(20, 50), hidden[:30])
    talk.tell(range(60, 65), hidden[30:], tree=Tree([-1, 0, 0, 1, 2]))
    before = talk.rows
    talk.accept([0, 2, 4], of=5)
    kept = [*range(30), 30, 32, 34]
    for row, whole in zip(talk.rows, before, strict=True):
        assert np.array_equal(row, whole[:, :, kept])


@pytest.mark.long
def test_two_requests_accept_separate_paths(begin) -> None:
    ids, tree = np.arange(60, 65), Tree([-1, 0, 0, 1, 2])
    talks = [begin(), begin()]
    for talk in talks:
        talk.tell(range(20, 50))
        talk.tell(ids, tree=tree)
    for talk, node in zip(talks, (3, 4), strict=True):
        plain = begin()
        plain.tell(range(20, 50))
        plain.tell(ids[tree.path(node)])
        talk.accept(tree.path(node), of=5)
        assert distance(talk.tell([5])["logits"], plain.tell([5])["logits"]) <= 1e-5


def test_a_saved_conversation_contains_the_accepted_path(begin, tmp_path) -> None:
    talk, other = begin(), begin()
    talk.tell(range(20, 50))
    talk.tell(range(60, 65), tree=Tree([-1, 0, 0, 1, 2]))
    talk.accept([0, 2, 4], of=5)
    talk.request.save_state(tmp_path / "talk")
    other.request.load_state(tmp_path / "talk")
    other.said = talk.said
    assert np.array_equal(other.tell([5])["logits"], talk.tell([5])["logits"])


def test_finite_biases_are_added_unchanged(begin) -> None:
    """Biases between 0 and minus infinity weaken a position without hiding it."""
    talk, plain = begin(), begin()
    for one in (talk, plain):
        one.tell(range(20, 50))
    bias = np.zeros((1, 1, 1, 31), np.float32)
    bias[..., :30] = -3
    found, without = talk.tell([5], mask=bias), plain.tell([5], mask=NOTHING)
    assert distance(found["logits"], without["logits"]) > 1e-3
    plain.said -= 1
    bias[..., :30] = 0
    bias[..., 30:] = 3  # equal up to a constant added to all scores
    assert distance(found["logits"], plain.tell([5], mask=bias)["logits"]) <= 1e-5
