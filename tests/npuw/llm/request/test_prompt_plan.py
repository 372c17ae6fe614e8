"""The plan of a prompt, against what a conversation then runs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from npuw_layer.errors import OptionError, TensorError
from npuw_layer.kinds.llm.compiled_model import CompiledModel
from npuw_layer.llm.kv.row_layouts import CacheSize, RowLayout
from npuw_layer.llm.request.prompt_plan import PromptPlan, plan_prompt, with_lengths
from npuw_layer.options import parse_options

CHUNKED = {
    "NPUW_LLM_MAX_PROMPT_LEN": 1024,
    "NPUW_LLM_MIN_RESPONSE_LEN": 128,
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 256,
}
COPYING = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 64, "NPUW_LLM_KV_SWITCHOVER": "COPY"}
LENGTHS = (1, 20, 255, 256, 300, 1000, 1024)
SIZE = CacheSize({RowLayout("f32", 2, 8, transposed=False): 4})
"""Two layers with two heads of 8 values."""


def plan(tokens: int, **options: Any) -> PromptPlan:
    """Plan a prompt with options under NPUW's names, without the prefix."""
    named = {f"NPUW_LLM_{name}": value for name, value in options.items()}
    lengths = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
    return plan_prompt(parse_options(lengths | named), SIZE, tokens)


def check(talk: Any, tokens: int) -> None:
    """Compare a plan with a conversation, and its bytes with those copied."""
    found = CompiledModel(talk.request._compiled).plan_prompt(tokens)
    talk.reset()
    talk.tell([5] * tokens)
    first = talk.request._conversation
    counts, generate = first.reader.prefill.counts, first.reader.generate
    assert [chunk.model for chunk in found.chunks] == [one.stage.tokens for one in counts.chunks]
    assert [chunk.tokens for chunk in found.chunks] == [one.tokens for one in counts.chunks]
    (chosen,) = (one.capacity for one in found.variants if one.chosen)
    assert chosen == first.compiled.plan.capacities[generate.variant]
    first.cache.settle()
    of_generated = found.bytes_used if tokens == 1 else 0  # a step's row is always copied
    assert found.copy_bytes_here + of_generated == first.cache.copied_bytes
    assert found.kv_bytes == first.cache.most_bytes
    assert found.static_models == len(first.compiled.models)
    assert found.fits


def test_what_is_planned_then_runs(talks) -> None:
    talk = talks(**CHUNKED)
    for tokens in LENGTHS:
        check(talk, tokens)
        assert talk.request._conversation.reader.generate.selected_for == tokens


@given(st.integers(1, 128))
@example(128)
@settings(max_examples=15, deadline=None)
def test_copies_are_planned(talks, tokens: int) -> None:
    check(talks(**COPYING), tokens)


def test_copying_copies_all_rows_of_a_prompt() -> None:
    found = plan(100, KV_SWITCHOVER="COPY")
    assert found.copy_bytes_here == found.bytes_used == 100 * SIZE.row_bytes


def test_npuw_copies_all_rows_as_f16() -> None:
    """Source: docs/reference/npuw.md#kv-copies and #kv-types; these caches are f32."""
    found = plan(100)
    assert (found.copy_bytes_here, found.copy_bytes_npuw) == (0, 100 * SIZE.row_bytes // 2)


def test_a_prompt_that_does_not_fit_has_a_reason_and_nothing_runs() -> None:
    found = plan(129)
    assert not found.fits
    assert "the prompt has 129 tokens, at most 128 are possible; raise NPUW_LLM" in found.reason
    assert not found.chunks
    assert not any(one.chosen for one in found.variants)


def test_the_article_s_variants_have_its_utilisation() -> None:
    """300 tokens and 128 reserved: 512 is chosen, 83.6 % of it are needed."""
    found = plan(300, MAX_PROMPT_LEN=1024, MIN_RESPONSE_LEN=128)
    (chosen,) = (one for one in found.variants if one.chosen)
    assert (found.needed, chosen.capacity) == (428, 512)
    assert round(100 * chosen.utilisation, 1) == 83.6
    assert round(100 * chosen.waste, 1) == 16.4


def test_the_article_s_hello_needs_its_own_row_and_the_reserve() -> None:
    """One token and 128 reserved: 129 rows, although a generate step reads the token."""
    found = plan(1, MAX_PROMPT_LEN=1024, MIN_RESPONSE_LEN=128)
    assert not found.chunks
    assert found.reason == (
        "129 = 1 stored + 128 reserved; the smallest variant that holds them is 256"
    )
    assert found.needed == 129


def test_a_truncated_prompt_drops_its_middle() -> None:
    found = plan(200, ON_FULL="TRUNCATE")
    assert found.fits
    assert sum(chunk.tokens for chunk in found.chunks) == 128
    assert found.reason.startswith("the middle 72 of 200 tokens are dropped; 192 = 128 stored + 64")


def test_steps_read_what_prefill_has_no_room_for_while_the_cache_slides(talks) -> None:
    options = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
    found = plan(200, ON_FULL="SLIDE")
    assert found.fits
    assert found.reason.startswith("generate steps read the last 72 of 200 tokens; 255 = 191 st")
    check(talks(**options, NPUW_LLM_ON_FULL="SLIDE"), 90)


def test_other_lengths_are_planned_with_the_other_options() -> None:
    options = with_lengths(parse_options({"NPUW_LLM_PREFILL_CHUNK_SIZE": 256}), 4096, None)
    found = plan_prompt(options, SIZE, 3000)
    assert (found.max_prompt_len, found.min_response_len, found.capacity) == (4096, 128, 4224)
    assert [one.capacity for one in found.variants if one.chosen] == [4096]
    assert [chunk.tokens for chunk in found.chunks] == [256] * 11 + [64, 64, 56]


def test_wrong_numbers_are_rejected() -> None:
    with pytest.raises(TensorError, match="a prompt of 0 tokens"):
        plan(0)
    with pytest.raises(OptionError, match="NPUW_LLM_MAX_PROMPT_LEN"):
        with_lengths(parse_options({}), 0, None)


def test_a_timeline_of_an_unknown_program_is_rejected(talks) -> None:
    with pytest.raises(TensorError, match="no static model 'none'; there are prefill_"):
        CompiledModel(talks(**COPYING).request._compiled).timeline("none")
