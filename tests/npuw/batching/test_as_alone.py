"""Concurrent conversations: each has the logits that it would have alone."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import GOLDENS

from npuw_layer.batching import ContinuousBatching, Worker

ids = st.lists(st.integers(0, 96), min_size=1, max_size=40)
turns = st.lists(st.tuples(ids, st.integers(0, 20), st.integers(0, 6)), min_size=1, max_size=3)
joining = st.lists(st.tuples(turns, st.integers(0, 6)), min_size=1, max_size=7)


@pytest.mark.matrix
@pytest.mark.parametrize("options", ["SLOTS", "CHUNKED"])
@settings(max_examples=15, deadline=None)
@given(conversations=joining, places=st.integers(1, 6))
def test_each_conversation_has_the_logits_of_a_single_one(
    talks, crowd, options: str, conversations: list[Any], places: int
) -> None:
    """Conversations join at any step and leave at their end; without a free place, they wait."""
    config = getattr(crowd, options)
    engine = ContinuousBatching(talks(**config).request._compiled, places)
    scripts = [[crowd.Turn(*turn) for turn in turns] for turns, _ in conversations]
    found: list[list[np.ndarray]] = []
    for turns, (_, steps) in zip(scripts, conversations, strict=True):
        found.append(crowd.begin(engine.open(), turns))
        for _ in range(steps):
            engine.step()
    crowd.run(engine)
    for turns, logits in zip(scripts, found, strict=True):
        expected = crowd.alone(talks(**config), turns)
        assert crowd.same(logits, expected)
        assert [one.argmax() for one in logits] == [one.argmax() for one in expected]


@pytest.mark.long
@pytest.mark.parametrize(("device", "kind"), [("NPU", "i8"), ("CPU", "f8e4m3"), ("NPU", "f16")])
def test_narrow_caches_are_separate(talks, batching, crowd, device: str, kind: str) -> None:
    options = {**crowd.SLOTS, "KV_CACHE_PRECISION": kind, "NPUW_DEVICES": device}
    engine = batching(**options)
    everyone = [[crowd.Turn([*range(7 * i, 16 * i + 3)], answer=8 - 2 * i)] for i in range(3)]
    found = [crowd.begin(engine.open(), turns) for turns in everyone]
    assert {report.slots for report in crowd.run(engine)} >= {2, 4}
    for turns, logits in zip(everyone, found, strict=True):
        # A different rounding is one step of 127 for i8, of 16 for f8e4m3.
        error = {"i8": 5e-3, "f8e4m3": 3e-2, "f16": 2e-4}[kind]
        assert crowd.same(logits, crowd.alone(talks(**options), turns), error=error)


@pytest.mark.long
@pytest.mark.parametrize("precision", ["", "i8"])
def test_caches_of_transposed_values_are_separate(talks, batching, crowd, precision: str) -> None:
    options = {**crowd.SLOTS, "KV_CACHE_PRECISION": precision}
    engine = batching(**options, NPUW_LLM_OPTIMIZE_V_TENSORS="YES")
    everyone = [[crowd.Turn([*range(7 * i, 16 * i + 3)], answer=8 - 2 * i)] for i in range(3)]
    found = [crowd.begin(engine.open(), turns) for turns in everyone]
    assert {report.slots for report in crowd.run(engine)} >= {2, 4}
    for turns, logits in zip(everyone, found, strict=True):
        expected = crowd.alone(talks(**options), turns)
        assert crowd.same(logits, expected, error=5e-3 if precision else 1e-5)


@pytest.mark.long
def test_conversations_of_short_and_long_context_share_steps(
    restored, talks, batching, crowd
) -> None:
    """LongRoPE's factors follow each conversation's length; the original context is 64 tokens."""
    phi3 = restored(GOLDENS / "longrope", "phi3_fp16")
    engine = batching(**crowd.SLOTS, model=phi3)
    everyone = [[crowd.Turn([*range(20, 20 + count)], answer=12)] for count in (40, 62, 90)]
    found = [crowd.begin(engine.open(), turns) for turns in everyone]
    assert 4 in {report.slots for report in crowd.run(engine)}
    for turns, logits in zip(everyone, found, strict=True):
        assert crowd.same(logits, crowd.alone(talks(phi3), turns))


def test_more_conversations_than_slots_take_turns(talks, batching, crowd) -> None:
    """A conversation that misses a step keeps its last row, though its slot computes another."""
    engine = batching(places=6)
    everyone = [[crowd.Turn([i, 2 * i], answer=12)] for i in range(6)]
    found = [crowd.begin(engine.open(), turns) for turns in everyone]
    reports = crowd.run(engine)
    assert max(report.generated for report in reports) == 4
    for turns, logits in zip(everyone, found, strict=True):
        assert crowd.same(logits, crowd.alone(talks(**crowd.SLOTS), turns))


@pytest.mark.long
def test_the_smallest_model_that_holds_all_conversations_runs(batching, crowd) -> None:
    """Slots follow the number of conversations, capacity the longest one."""
    engine = batching(**crowd.LADDER)
    for count in (4, 3, 2, 1):
        crowd.begin(engine.open(), [crowd.Turn([1] * 3 * count, answer=3 + count)])
    used = [(r.generated, r.slots, r.capacity) for r in crowd.run(engine) if r.generated > 1]
    assert {(2, 2), (3, 4), (4, 4)} <= {(generated, slots) for generated, slots, _ in used}
    assert {capacity for *_, capacity in used} == {24}
    crowd.begin(engine.open(), [crowd.Turn([1] * 60, answer=20)])
    crowd.begin(engine.open(), [crowd.Turn([1] * 5, answer=20)])
    capacities = [r.capacity for r in crowd.run(engine) if r.generated == 2]
    assert list(dict.fromkeys(capacities)) == [72, 192]


@pytest.mark.long
def test_slots_are_bound_to_the_conversations_own_caches(batching, crowd) -> None:
    """No row is copied when conversations join and leave, or change their variant."""
    engine = batching(**crowd.LADDER)
    everyone = [engine.open() for _ in range(2)]
    for ids in ([5, 6, 7], [1], [2] * 10, *[[3]] * 10, [4]):
        for request in everyone:
            request.submit(ids)
        crowd.run(engine)
    caches = [engine._conversations[request].place.cache for request in everyone]
    models = {stage: model for stage, model in engine._runner._models.items() if stage.past}
    assert {stage.capacity for stage in models} == {24, 72}
    for model in models.values():
        program = model._program
        bound = {
            tensor.name: program._pointer(index)
            for index, tensor in enumerate(program._loaded.inputs)
        }
        assert model._sitting == caches
        for slot, cache in enumerate(caches):
            for name in cache.names:
                stack, number = cache._places[name]
                address = stack.memory.address + number * stack.rows.strides[0]
                assert bound[f"vpux_ie_read_value_{name}@slot{slot}"] == address


def test_an_empty_slot_does_not_affect_others(talks, batching, crowd) -> None:
    """Caches of former conversations, and forgotten rows, contain infinities."""
    engine = batching()
    everyone = [engine.open() for _ in range(4)]
    for ids in ([9] * 20, [1]):
        for request in everyone:
            request.submit(ids)
        crowd.run(engine)
    for request in everyone:
        cache = engine._conversations[request].place.cache
        for name in cache.names:
            cache.read(name)[...] = np.inf
        request.close()
    turns = [crowd.Turn([3, 4], answer=10)]
    found = [crowd.begin(engine.open(), turns) for _ in range(3)]
    assert 4 in {report.slots for report in crowd.run(engine)}
    assert all(crowd.same(logits, crowd.alone(talks(**crowd.SLOTS), turns)) for logits in found)


def test_threads_share_the_device_and_each_gets_its_own_logits(talks, batching, crowd) -> None:
    everyone = [[crowd.Turn(list(range(11 * i, 16 * i + 1)), answer=10)] for i in range(6)]
    found: dict[int, list[np.ndarray]] = {}

    def speak(number: int) -> None:
        said = crowd.script(everyone[number])
        ids, _ = next(said)
        with engine.open() as request:
            found[number] = [request.submit(ids).result(60)]
            for _ in range(everyone[number][0].answer):
                ids, _ = said.send(found[number][-1])
                found[number].append(request.submit(ids).result(60))

    engine = batching()
    with Worker(engine):
        threads = [threading.Thread(target=speak, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number, turns in enumerate(everyone):
        assert crowd.same(found[number], crowd.alone(talks(**crowd.SLOTS), turns))


@pytest.mark.long
def test_without_slots_conversations_take_turns_on_one_model(talks, batching, crowd) -> None:
    engine = batching(places=3, NPUW_LLM_BATCH_SLOTS=1)
    everyone = [[crowd.Turn([i, i], answer=4)] for i in range(3)]
    found = [crowd.begin(engine.open(), turns) for turns in everyone]
    assert {report.slots for report in crowd.run(engine)} == {0, 1}
    for turns, logits in zip(everyone, found, strict=True):
        assert crowd.same(logits, crowd.alone(talks(), turns))


@pytest.mark.long
@pytest.mark.parametrize("policy", ["SLIDE", "TRUNCATE"])
def test_the_policy_for_full_caches_applies_as_alone(talks, batching, crowd, policy: str) -> None:
    """SLIDE lets a conversation continue with the others; TRUNCATE lets it read again alone."""
    options = {**crowd.SLOTS, "NPUW_LLM_ON_FULL": policy}
    engine = batching(**options)
    long = [*range(90)]
    everyone = [[crowd.Turn(long + long[: 10 + 20 * i], answer=110)] for i in range(2)]
    found = [crowd.begin(engine.open(), turns) for turns in everyone]
    together = [report.slots for report in crowd.run(engine) if report.generated == 2]
    assert (set(together) == {2}) == (policy == "SLIDE")
    for turns, logits in zip(everyone, found, strict=True):
        assert crowd.same(logits, crowd.alone(talks(**options), turns))


def test_the_token_history_has_tokens_generated_together(talks, batching, crowd) -> None:
    """TRUNCATE reads again from the history, which has every token, wherever it was generated."""
    engine = batching()
    requests = [engine.open() for _ in range(2)]
    for ids in ([1, 2], [3], [4]):
        for request in requests:
            request.submit(ids)
        crowd.run(engine)
    for request in requests:
        place = engine._conversations[request].place
        assert place.history.ids == [1, 2, 3, 4]
        assert place.cache.rows.tokens == 4


@pytest.mark.long
def test_common_prefixes_of_prompts_are_read_once(talks, batching, crowd) -> None:
    options = {
        **crowd.CHUNKED,
        "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
        "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 16,
    }
    engine = batching(**options)
    turns = [crowd.Turn([*range(90)], answer=4)]
    first = crowd.begin(engine.open(), turns)
    steps = len([report for report in crowd.run(engine) if report.read])
    later = engine.open()
    second = crowd.begin(later, turns)
    assert (steps, len([report for report in crowd.run(engine) if report.read])) == (6, 1)
    assert later.cached_tokens == 80
    assert crowd.same(first, second)
    assert crowd.same(first, crowd.alone(talks(**crowd.CHUNKED), turns))


@pytest.mark.long
@pytest.mark.parametrize(
    "extra", [{"NPUW_LLM_SHARED_HEAD": "NO"}, {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8}]
)
def test_separate_lm_heads_and_wide_steps_return_equal_logits(
    talks, batching, crowd, extra
) -> None:
    options = {**crowd.SLOTS, **extra}
    engine = batching(**options)
    everyone = [[crowd.Turn([i, 5], answer=4), crowd.Turn([7, i], answer=2)] for i in range(3)]
    found = [crowd.begin(engine.open(), turns) for turns in everyone]
    crowd.run(engine)
    for turns, logits in zip(everyone, found, strict=True):
        assert crowd.same(logits, crowd.alone(talks(**options), turns))


@pytest.mark.long
def test_tokens_that_do_not_fit_prefill_are_read_one_by_one(talks, batching, crowd) -> None:
    single = {"NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "NO", "NPUW_LLM_PREFILL_PYRAMID": "NO"}
    engine = batching(**crowd.SLOTS, **single)
    request = engine.open()
    request.submit([1, 2, 3])
    crowd.run(engine)
    said = request.submit([4, 5, 6])
    assert [(report.read, report.generated) for report in crowd.run(engine)] == [(0, 1)] * 3
    assert crowd.same([said.result(0)], crowd.alone(talks(), [crowd.Turn([1, 2, 3, 4, 5, 6])]))
