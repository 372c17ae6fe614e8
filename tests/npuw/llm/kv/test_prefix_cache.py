"""Prefixes that prompts share are computed once, for all requests."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuw_layer.llm.kv.prefix_cache import PrefixCache

CACHING = {
    "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
    "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 8,
    "NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS": 6,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 16,
}
few = settings(max_examples=15, deadline=None)


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max())


def cached_tokens(talk) -> int:
    return int(talk.request.execution_report()["prefix cache"].split()[0])


@few
@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.lists(st.integers(0, 96), min_size=1, max_size=40)),
        min_size=1,
        max_size=6,
    )
)
def test_a_cached_prompt_equals_an_uncached_one(talks, prompts) -> None:
    """Prompts share prefixes of any length; blocks are evicted; generated tokens change nothing."""
    shared = np.random.default_rng(3).integers(0, 97, 40).tolist()
    for begin, rest in prompts:
        ids = shared[:begin] + rest
        cached, plain = talks(**CACHING), talks()
        assert close(cached.tell(ids), plain.tell(ids))
        assert cached_tokens(cached) % 8 == 0
        assert cached_tokens(cached) < len(ids), "at least the last token is computed"
        assert close(cached.tell([7]), plain.tell([7]))


def test_a_shared_prefix_is_not_computed_twice(talks) -> None:
    options = CACHING | {"NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS": 100}
    first, second = talks(**options), talks(**options)
    system = np.random.default_rng(4).integers(0, 97, 96).tolist()
    first.tell([*system, 1, 2])
    assert first.request.execution_report()["prefill"].count("prefill_16") == 6
    second.tell([*system, 3, 4, 5])
    assert cached_tokens(second) == 96
    assert second.request.execution_report()["prefill"] == "prefill_4_after_128"


def test_other_positions_are_another_prompt(talks) -> None:
    options = CACHING | {"NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS": 101}
    ids = np.random.default_rng(5).integers(0, 97, (1, 30))
    inputs = {"input_ids": ids, "attention_mask": np.ones((1, 30), np.int64)}
    talk, shifted = talks(**options), talks(**options)
    talk.request.infer(inputs | {"position_ids": np.arange(30)[None]})
    shifted.request.infer(inputs | {"position_ids": np.arange(30)[None] + 1})
    assert cached_tokens(shifted) == 0


def block(value: int, nbytes: int = 64) -> list[np.ndarray]:
    return [np.full(nbytes, value, np.uint8)]


def fill(cache: PrefixCache, ids: list[int]) -> None:
    cache.store(np.array(ids), lambda begin, end: block(ids[begin]))


def held(cache: PrefixCache, ids: list[int]) -> list[int]:
    return [int(rows[0][0]) for rows in cache.find(np.array([*ids, 0]))]


def test_the_least_recently_used_leaf_is_evicted() -> None:
    cache = PrefixCache(block_size=1, max_blocks=3, max_bytes=10_000)
    fill(cache, [1, 2])
    fill(cache, [1, 3])
    assert held(cache, [1, 2]) == [1, 2], "and both are recently used"
    fill(cache, [4])
    assert held(cache, [1, 3]) == [1], "3 was evicted"
    assert held(cache, [1, 2]) == [1, 2], "1 is older, but 2 depends on it"
    assert held(cache, [4]) == [4]
    assert len(cache) == 3


@given(st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=30), st.integers(0, 500))
def test_limits_are_kept_and_found_rows_are_right(prompts, max_bytes) -> None:
    cache = PrefixCache(block_size=1, max_blocks=5, max_bytes=max_bytes)
    for ids in prompts:
        fill(cache, ids)
        found = held(cache, ids)
        assert found == ids[: len(found)]
        assert len(cache) <= 5
        assert cache.nbytes == 64 * len(cache) <= max_bytes


def test_blocks_that_exceed_the_limit_are_not_stored() -> None:
    cache = PrefixCache(block_size=1, max_blocks=5, max_bytes=63)
    fill(cache, [1, 2])
    assert held(cache, [1, 2]) == []


def test_many_threads_share_one_cache() -> None:
    cache = PrefixCache(block_size=2, max_blocks=7, max_bytes=64 * 6)
    wrong: list[list[int]] = []

    def use(seed: int) -> None:
        draw = np.random.default_rng(seed)
        for _ in range(300):
            ids = draw.integers(0, 3, 8).tolist()
            fill(cache, ids)
            found = held(cache, ids)
            if found != ids[::2][: len(found)]:
                wrong.append(found)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert cache.nbytes <= 64 * 6


@pytest.mark.matrix
@pytest.mark.parametrize("masked", [0, 3])
def test_a_prompt_with_padding_is_not_cached(talks, masked) -> None:
    """Tokens that attend to fewer tokens have other rows, even if their ids are equal."""
    options = CACHING | {"NPUW_LLM_PREFIX_CACHING_MAX_NUM_BLOCKS": 102 + masked}
    ids = np.random.default_rng(6).integers(0, 97, (1, 30))
    inputs = {"input_ids": ids, "position_ids": np.arange(30)[None]}
    mask = np.ones((1, 30), np.int64)
    talks(**options).request.infer(inputs | {"attention_mask": mask})
    mask[0, :masked] = 0
    other, plain = talks(**options), talks()
    found, expected = (
        talk.request.infer(inputs | {"attention_mask": mask})["logits"][0, -1]
        for talk in (other, plain)
    )
    assert close(found, expected)
    assert cached_tokens(other) == (0 if masked else 24)
