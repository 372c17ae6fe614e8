"""Short prompts of several conversations, read in one prefill run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import GOLDENS

from npuw_layer.batching import ContinuousBatching
from npuw_layer.batching.participant import Submission
from npuw_layer.batching.shared_prefill import share_prefill
from npuw_layer.batching.slots import SlotModel
from npuw_layer.errors import DeviceError
from npuw_layer.llm.plan.chunks import chunks, cost
from npuw_layer.llm.plan.stages import SHARED_PROMPT, plan
from npuw_layer.options import parse_options

prompts = st.lists(st.lists(st.integers(0, 96), min_size=1, max_size=40), min_size=2, max_size=6)


def waiting(*lengths: int, keep: int = 0) -> list[Submission]:
    return [
        Submission(np.zeros(count, np.int64), keep, order) for order, count in enumerate(lengths)
    ]


def shared(submissions: list[Submission], **options: Any) -> tuple[list[int], str] | None:
    """Return the prompts that share a run, and the model's name."""
    checked = parse_options({"NPUW_LLM_BATCH_SLOTS": "2,4,8", **options})
    found = share_prefill(submissions, plan(checked), checked)
    return None if found is None else ([*found.prompts], found.stage.name)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ((32, 32), ([0, 1], "prefill_32_slots_2")),
        ((17, 9, 32), ([0, 1, 2], "prefill_32_slots_4")),
        ((17, 18, 33, 600, 7), ([0, 1, 4], "prefill_32_slots_4")),
        ((20,) * 11, ([*range(8)], "prefill_32_slots_8")),
        ((2, 2, 2), None),  # three short runs compute fewer rows
        ((32,), None),
        ((33, 20, 20), None),  # first come, first served
        ((1, 5, 5), None),  # a generate model reads a single token
    ],
)
def test_short_prompts_join_the_oldest_one(lengths, expected) -> None:
    assert shared(waiting(*lengths)) == expected


def test_prompts_share_a_run_only_if_it_costs_no_more() -> None:
    few, enough = waiting(*[20] * 3), waiting(*[20] * 4)
    assert shared(few, NPUW_LLM_BATCH_SLOTS="1,8") is None
    assert shared(enough, NPUW_LLM_BATCH_SLOTS="1,8") == ([*range(4)], "prefill_32_slots_8")


@given(st.lists(st.integers(1, 700), max_size=12), st.sets(st.sampled_from([1, 2, 4, 8, 16])))
def test_a_shared_run_serves_short_prompts_at_no_more_cost(lengths, slots) -> None:
    options = parse_options({"NPUW_LLM_BATCH_SLOTS": ",".join(map(str, {1, *slots}))})
    planned, submissions = plan(options), waiting(*lengths)
    found = share_prefill(submissions, planned, options)
    if found is None:
        return
    read = [lengths[number] for number in found.prompts]
    alone = (chunk for count in read for chunk in chunks(planned, options, count, 0))
    assert found.prompts[0] == 0
    assert [*found.prompts] == sorted(found.prompts)
    assert 2 <= len(read) <= found.stage.slots
    assert max(read) <= SHARED_PROMPT
    assert cost(found.stage) <= sum(cost(chunk.stage) for chunk in alone)


def test_continued_and_half_read_conversations_read_alone() -> None:
    assert shared(waiting(20, 20, keep=3)) is None
    begun = waiting(20, 20, 20)
    begun[1].reading = iter(())  # type: ignore[assignment]
    assert shared(begun) == ([0, 2], "prefill_32_slots_2")


@pytest.mark.parametrize(("block", "joins"), [(20, None), (21, 2), (64, 2)])
def test_a_prompt_that_the_prefix_cache_may_hold_is_read_alone(block: int, joins) -> None:
    options = {
        "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
        "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": block,
    }
    found = shared(waiting(20, 20), **options)
    assert (None if found is None else len(found[0])) == joins


def test_a_model_with_isolated_attention_reads_each_prompt_alone() -> None:
    options = {"NPUW_LLM_PREFILL_ATTENTION_HINT": "HFA", "NPUW_LLM_PREFILL_CHUNK_SIZE": 256}
    assert not plan(parse_options({"NPUW_LLM_BATCH_SLOTS": 8, **options})).shared


@settings(max_examples=10, deadline=None)
@given(prompts=prompts, rewind=st.integers(0, 6))
def test_shared_prompts_have_the_logits_of_single_ones(talks, crowd, prompts, rewind) -> None:
    """Afterwards each conversation goes on, rewinds, and reads another prompt from the start."""
    engine = ContinuousBatching(talks(**crowd.SLOTS).request._compiled, 6)
    scripts = [
        [crowd.Turn(ids, answer=3), crowd.Turn([7, 8], rewind, 2), crowd.Turn(ids[:9], 99, 1)]
        for ids in prompts
    ]
    found = [crowd.begin(engine.open(), turns) for turns in scripts]
    reports = crowd.run(engine)
    for turns, logits in zip(scripts, found, strict=True):
        expected = crowd.alone(talks(**crowd.SLOTS), turns)
        assert crowd.same(logits, expected)
        assert [one.argmax() for one in logits] == [one.argmax() for one in expected]
    lengths = [len(ids) for ids in prompts]
    if all(1 < count <= SHARED_PROMPT for count in lengths):
        assert any("prefill_32_slots" in name for name in reports[0].programs)


def test_a_step_reads_four_prompts_and_then_generates_for_all(batching, crowd) -> None:
    engine = batching()
    for count in (3, 32, 10, 2):
        crowd.begin(engine.open(), [crowd.Turn([count] * count, answer=1)])
    first, second = crowd.run(engine)
    assert first.programs == ("prefill_32_slots_4", "lm_head_4")
    assert (first.read, first.generated, second.generated) == (47, 0, 4)


@pytest.mark.parametrize(
    "extra",
    [
        {"NPUW_LLM_SHARED_HEAD": "NO"},
        {"KV_CACHE_PRECISION": "i8"},
        {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES"},
        {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES", "NPUW_LLM_PREFILL_CHUNK_SIZE": 16},
    ],
)
@pytest.mark.matrix
def test_rows_of_any_layout_reach_their_own_cache(talks, batching, crowd, extra) -> None:
    options = {**crowd.SLOTS, **extra}
    engine = batching(**options)
    everyone = [[crowd.Turn([*range(5 * i, 5 * i + 29 + i)], answer=4)] for i in range(4)]
    found = [crowd.begin(engine.open(), turns) for turns in everyone]
    assert "prefill_32_slots_4" in crowd.run(engine)[0].programs
    error = 5e-3 if "KV_CACHE_PRECISION" in extra else 1e-5
    for turns, logits in zip(everyone, found, strict=True):
        assert crowd.same(logits, crowd.alone(talks(**options), turns), error)


def test_a_failed_run_leaves_empty_conversations(batching, crowd, monkeypatch) -> None:
    engine = batching()
    requests = [engine.open() for _ in range(4)]
    futures = [request.submit([1, 2, 3]) for request in requests]

    def fail(*_: Any) -> None:
        raise DeviceError("the device hangs")

    with monkeypatch.context() as patched:
        patched.setattr(SlotModel, "run", fail)
        engine.step()
    for request, future in zip(requests, futures, strict=True):
        with pytest.raises(DeviceError, match="hangs"):
            future.result(0)
        assert request.stored == 0
    again = [request.submit([1, 2, 3]) for request in requests]
    crowd.run(engine)
    assert len({future.result(0).tobytes() for future in again}) == 1


@pytest.mark.long
@pytest.mark.parametrize("family", ["bloom", "gemma3", "gpt_neo", "opt"])
def test_families_with_masks_of_their_own_share_runs(
    restored, talks, batching, crowd, family: str
) -> None:
    """Biases, windows and counted positions follow each prompt's own tokens."""
    model = restored(GOLDENS / "exported", f"{family}_fp16")
    options = {**crowd.SLOTS, "NPUW_DEVICES": "CPU"}
    engine = batching(model=model, **options)
    draw = np.random.default_rng(0)
    everyone = [
        [crowd.Turn(draw.integers(3, 60, count).tolist(), answer=3)] for count in (2, 32, 17, 29)
    ]
    found = [crowd.begin(engine.open(), turns) for turns in everyone]
    assert "prefill_32_slots_4" in crowd.run(engine)[0].programs
    for turns, logits in zip(everyone, found, strict=True):
        assert crowd.same(logits, crowd.alone(talks(model, **options), turns), error=3e-5)
