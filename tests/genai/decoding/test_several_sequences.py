"""Several sampled texts of one prompt."""

from __future__ import annotations

import numpy as np
from tests.genai.decoding.conftest import Decodes

TABLE = np.random.default_rng(1).normal(size=(12, 12)) * 2
SAMPLED = {"do_sample": True, "max_new_tokens": 8, "temperature": 2.0}


def test_texts_are_sorted_by_score(decodes: Decodes) -> None:
    found = decodes(TABLE, num_return_sequences=5, **SAMPLED)
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    assert len({one.text for one in found}) > 1


def test_the_first_draws_are_those_of_the_first_tokens(decodes: Decodes) -> None:
    """The n first tokens are n draws from one distribution, with one seed."""
    found = decodes(TABLE, num_return_sequences=3, **SAMPLED | {"max_new_tokens": 1})
    alone = decodes(TABLE, **SAMPLED | {"max_new_tokens": 1})
    assert alone[0].tokens in [one.tokens for one in found]


def test_a_text_that_ends_leaves_the_others_growing(decodes: Decodes) -> None:
    stops = set(range(6))
    found = decodes(TABLE, num_return_sequences=6, stop_token_ids=stops, **SAMPLED)
    assert len({len(one.tokens) for one in found}) > 1
    for one in found:
        assert one.tokens[-1] in stops or len(one.tokens) == 8
        assert not stops & set(one.tokens[:-1])


def test_penalties_count_each_texts_own_tokens(decodes: Decodes) -> None:
    table = np.zeros((12, 12))
    found = decodes(
        table, num_return_sequences=3, repetition_penalty=1.0, frequency_penalty=2.0, **SAMPLED
    )
    assert all(len(one.tokens) == 8 for one in found)


def test_the_prompt_is_echoed_by_each(decodes: Decodes) -> None:
    found = decodes(TABLE, [3, 4], num_return_sequences=2, echo=True, **SAMPLED)
    assert all(one.text.startswith("de") and one.echoed == [3, 4] for one in found)
