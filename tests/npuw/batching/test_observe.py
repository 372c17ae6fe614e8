"""Observation of a batching, against what really ran."""

from __future__ import annotations

from collections import Counter
from typing import Any

from npuw_layer.backends.protocols import ShowsTimeline, ability
from npuw_layer.backends.recording import recording
from npuw_layer.batching import ContinuousBatching
from npuw_layer.batching.observed import ObservedPlace

FEW = {
    "NPUW_LLM_BATCH_SLOTS": "2",
    "NPUW_LLM_GENERATE_PYRAMID": "NO",
    "NPUW_LLM_PREFILL_CHUNK_SIZE": 16,
    "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
    "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 16,
}
"""Options of few static models, with a prefix cache."""


def run(engine: ContinuousBatching, *futures: Any) -> None:
    """Run steps until futures are done."""
    while not all(future.done() for future in futures):
        engine.step()
    assert all(future.exception() is None for future in futures)


def test_a_place_shows_its_conversation_from_prompt_to_end(batching, crowd) -> None:
    engine = batching(**crowd.CHUNKED)
    assert engine.observe().places == [ObservedPlace(slot) for slot in range(4)]
    assert engine.observe().last_step is None
    request = engine.open()
    future = request.submit([1] * 40)
    engine.step()
    place = engine.observe().places[0]
    assert place.conversation is request
    assert (place.phase, place.prompt_tokens, place.stored_tokens) == ("prefilling", 40, 16)
    assert place.variant is None
    run(engine, future)
    place = engine.observe().places[0]
    assert (place.phase, place.prompt_tokens, place.mask_ones) == ("generating", 40, 40)
    assert list(place.prefill_chunks) == [16, 16, 8]
    assert place.variant == 192
    assert place.variant_reason == (
        "104 = 40 stored + 64 reserved; the smallest variant that holds them is 192"
    )
    run(engine, request.submit([2]))
    assert engine.observe().places[0].stored_tokens == 41
    assert engine.observe().places[0].prompt_tokens == 40
    assert engine.observe().last_ended is None
    before = engine.observe().places[0]
    request.close()
    assert engine.observe().last_ended == before
    engine.step()
    assert engine.observe().places[0] == ObservedPlace(0)
    assert engine.observe().last_ended == before, "its place is reset, and what it showed is kept"


def test_a_new_conversation_shows_no_counts_of_the_last_one(batching, crowd) -> None:
    engine = batching(places=1, **crowd.CHUNKED)
    first, second = engine.open(), engine.open()
    run(engine, first.submit([1] * 40))
    waiting = second.submit([2])
    assert engine.observe().waiting == 1
    first.close()
    run(engine, waiting)
    place = engine.observe().places[0]
    assert place.conversation is second
    assert (place.prompt_tokens, place.stored_tokens) == (1, 1)
    assert not place.prefill_chunks
    assert place.variant == 72
    assert str(place.variant_reason).startswith("65 = 1 stored + 64 reserved")


def test_conversations_that_generate_together_show_the_model_they_share(batching, crowd) -> None:
    engine = batching(**crowd.CHUNKED)
    requests = [engine.open() for _ in range(3)]
    run(engine, *(request.submit([1, 2, 3]) for request in requests[:2]))
    run(engine, requests[2].submit([1] * 50))
    futures = [request.submit([4]) for request in requests]
    engine.step()
    assert all(future.done() for future in futures)
    state = engine.observe()
    assert [place.variant for place in state.places[:3]] == [72] * 3
    assert "3 conversations generate together" in str(state.places[0].variant_reason)
    assert state.last_step is not None
    assert (state.last_step.kind, state.last_step.generated) == ("generate", 3)
    assert (state.last_step.slots, state.last_step.capacity) == (4, 72)
    run(engine, requests[0].submit([5]))
    assert "reserved" in str(engine.observe().places[0].variant_reason), "it ran alone"


def test_a_variant_that_took_over_shows_why(batching, crowd) -> None:
    engine = batching(**crowd.CHUNKED)
    request = engine.open()
    run(engine, request.submit([1]))
    for _ in range(72):
        run(engine, request.submit([2]))
    place = engine.observe().places[0]
    assert place.variant == 192
    assert place.variant_reason == "72 is full; the next larger variant took over"


def test_programs_of_a_step_are_those_that_ran_and_take_their_modelled_time(
    talks, batching
) -> None:
    """PERF_COUNT reports each run of a program, with its name and its time on the device."""
    options = FEW | {"PERF_COUNT": "YES"}
    compiled = talks(**options).request._compiled
    engine = batching(**options)
    long, short = engine.open(), engine.open()
    futures = [long.submit([1] * 40), short.submit([1])]
    kinds = Counter[str]()
    for _ in range(12):
        with recording() as runs:
            report = engine.step()
        assert [run.labels[0] for run in runs] == list(report.programs)
        for one in runs:
            shown = ability(compiled.submodels[one.labels[0]], ShowsTimeline)
            assert shown is not None
            assert max(task.end_ns for task in shown.timeline()) == one.total_ns
        step = engine.observe().last_step
        assert step is not None
        assert step.programs == report.programs
        kinds[step.kind] += 1
        futures = [
            request.submit([3]) if future.done() else future
            for request, future in zip((long, short), futures, strict=True)
        ]
    assert kinds.keys() == {"prefill", "both", "generate"}


def test_a_step_without_work_is_not_counted(batching, crowd) -> None:
    engine = batching(**crowd.CHUNKED)
    run(engine, engine.open().submit([1] * 40))
    engine.step()
    step = engine.observe().last_step
    assert step is not None
    assert step.number == 3
    assert step.programs == ("prefill_16_after_48", "lm_head")


def test_memory_is_that_of_weights_caches_and_programs(batching) -> None:
    engine = batching(**FEW, NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE="YES")
    compiled = engine._compiled
    run(engine, engine.open().submit([1] * 40))
    state, sums = engine.observe(), Counter[str]()
    for part in state.memory:
        sums[part.kind] += part.bytes
    assert sums["weights"] == compiled.bank.nbytes
    assert sums["kv_cache"] == sum(place.cache.nbytes for place in engine._places.all)
    assert sums["prefix_cache"] == 32 * state.kv.bytes_per_token
    assert sums["programs"] == sum(map(len, compiled.programs.values()))
    (weights,) = (part for part in state.memory if part.kind == "weights" and part.address)
    assert weights.name == "model.safetensors"


def test_the_shape_is_that_of_the_model(batching, crowd) -> None:
    kv = batching(**crowd.CHUNKED).observe().kv
    assert (kv.capacity, kv.max_prompt, kv.min_response) == (192, 128, 64)
    assert list(kv.variants) == [24, 72, 192]
    assert kv.layers == 2
    assert kv.bytes_per_token == 2 * 2 * (2 * 8) * 4, "K and V, two layers, two heads of 8, f32"
