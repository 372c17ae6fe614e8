"""Prefill: choice of models, placement of rows, and unchanged results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuw_layer.llm.plan.stages import plan
from npuw_layer.options import parse_options

few = settings(max_examples=10, deadline=None)


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max())


def names(**options: object) -> list[str]:
    config = {f"NPUW_LLM_{name}": value for name, value in options.items()}
    return [stage.name for stage in plan(parse_options(config)).prefill]


def test_a_short_prompt_uses_a_small_model() -> None:
    assert names(PREFILL_HINT="STATIC") == ["prefill_64", "prefill_256", "prefill_1024"]
    assert names(PREFILL_PYRAMID="NO") == ["prefill_1024"]


def test_a_small_model_also_begins_after_any_number_of_tokens() -> None:
    small = [f"prefill_{tokens}_after_{past}" for tokens in (16, 64) for past in (256, 1024)]
    assert names() == [*small, "prefill_256", "prefill_1024"]
    few = ["prefill_64_after_256", "prefill_256"]
    assert names(MAX_PROMPT_LEN=256) == few, "a short past costs little"
    assert names(MAX_PROMPT_LEN=64) == ["prefill_64"], "one run reads all again"


def test_early_chunks_attend_to_little_with_pyramid_attention() -> None:
    long = {"MAX_PROMPT_LEN": 8192, "PREFILL_PYRAMID": "NO"}
    chunks = [f"prefill_1024_after_{past}" for past in (1024, 3072, 7168)]
    assert names(**long) == ["prefill_1024", *chunks]
    assert names(**long, PREFILL_ATTENTION_HINT="STATIC") == ["prefill_1024_after_7168"]


def test_the_head_is_one_model_or_part_of_each() -> None:
    assert [stage.name for stage in plan(parse_options({})).heads] == ["lm_head"]
    assert plan(parse_options({"NPUW_LLM_SHARED_HEAD": "NO"})).heads == ()


PATHS = [
    {"NPUW_LLM_KV_SWITCHOVER": "COPY"},
    {"NPUW_LLM_SHARED_HEAD": "NO"},
    {"NPUW_LLM_PREFILL_CHUNK_SIZE": 16},
    {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32, "NPUW_LLM_KV_SWITCHOVER": "COPY"},
    {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32, "NPUW_LLM_PREFILL_ATTENTION_HINT": "STATIC"},
    {"NPUW_LLM_PREFILL_PYRAMID": "NO", "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "NO"},
    {"NPUW_LLM_SHARED_HEAD": "NO", "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 4},
    {"KV_CACHE_PRECISION": "i8"},
]


@pytest.mark.matrix
@pytest.mark.parametrize("options", PATHS, ids=lambda options: " ".join(map(str, options.values())))
@few
@given(ids=st.lists(st.integers(0, 96), min_size=1, max_size=120))
def test_all_prefill_options_give_the_same_logits(talks, options, ids) -> None:
    precision = {k: v for k, v in options.items() if k == "KV_CACHE_PRECISION"}
    copies = {"NPUW_LLM_KV_SWITCHOVER": "COPY"} if precision else {}
    one, other = talks(**options), talks(**precision, **copies)
    assert close(one.tell(ids), other.tell(ids))
    for following in (5, 6):
        assert close(one.tell([following]), other.tell([following]))
    found, expected = (
        {state.name: state.state.data for state in talk.request.query_state()}
        for talk in (one, other)
    )
    for name in found.keys() & expected.keys():  # not all have the count of stored tokens
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)
    assert len(found.keys() & expected.keys()) >= 2 * 2


def copied(talk) -> int:
    return int(talk.request.execution_report()["KV copied"].split()[0])


@pytest.mark.long
def test_zero_copy_copies_nothing_of_a_small_last_chunk(talks) -> None:
    """A smaller model reads it, and writes directly after complete chunks, too."""
    options = {"NPUW_LLM_MAX_PROMPT_LEN": 1024, "NPUW_LLM_PREFILL_CHUNK_SIZE": 256}
    talk, other = talks(**options), talks(**options, NPUW_LLM_KV_SWITCHOVER="COPY")
    ids = np.random.default_rng(4).integers(0, 97, 300)
    assert close(talk.tell(ids), other.tell(ids))
    assert "prefill_64" in talk.request.execution_report()["prefill"]
    assert close(talk.tell([1]), other.tell([1]))
    assert copied(talk) == 0
    assert copied(other) > 0


@pytest.mark.matrix
@pytest.mark.parametrize("chunk", [0, 32])
def test_zero_copy_copies_nothing_of_a_prompt(talks, chunk) -> None:
    """Prefill writes where generate reads; without zero copy every row is copied once."""
    row = 2 * 2 * 2 * 8 * 4  # layers, K and V, heads, channels, f32
    ids = np.random.default_rng(0).integers(0, 97, 100)
    for switchover, expected in (("ZERO_COPY", 0), ("COPY", 100 * row)):
        talk = talks(
            NPUW_LLM_KV_SWITCHOVER=switchover,
            NPUW_LLM_PREFILL_CHUNK_SIZE=chunk,
            NPUW_LLM_PREFILL_PYRAMID="NO",
            NPUW_LLM_ENABLE_CONTINUOUS_PREFILL="NO",
        )
        talk.tell(ids)
        talk.tell([1])
        assert copied(talk) == expected
        talk.tell([2])
        assert copied(talk) == expected + row, "a generated row is copied to its place"
