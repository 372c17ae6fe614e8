"""Conversations in slots with block caches: a slot reads the blocks of its current conversation."""

from __future__ import annotations

import pytest

from npuw_layer.llm.kv.kv_layout import KVLayout

BLOCKS = {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES", "NPUW_LLM_PREFILL_CHUNK_SIZE": 16}


@pytest.mark.long
@pytest.mark.parametrize("precision", ["", "i8"])
def test_each_conversation_has_the_logits_of_a_single_one(
    talks, batching, crowd, precision: str
) -> None:
    """Conversations grow over blocks and variants, rewind, and begin again, which frees blocks."""
    ladder = crowd.SLOTS if precision else crowd.LADDER
    options = ladder | BLOCKS | {"KV_CACHE_PRECISION": precision}
    engine = batching(**options)
    everyone = [
        [crowd.Turn([i] * 5 * i, answer=20), crowd.Turn([7, i], back=9, answer=30)]
        for i in range(1, 5)
    ]
    everyone.append([crowd.Turn([3] * 100, answer=10), crowd.Turn([2] * 9, back=500, answer=30)])
    everyone += [[crowd.Turn([i], answer=160)] for i in (8, 9)]
    found = [crowd.begin(engine.open(), turns) for turns in everyone]
    assert {report.slots for report in crowd.run(engine)} >= {2, 4}
    for turns, logits in zip(everyone, found, strict=True):
        expected = crowd.alone(talks(**options), turns)
        assert crowd.same(logits, expected, error=5e-3 if precision else 1e-5)


@pytest.mark.long
def test_slots_are_bound_to_the_conversations_own_blocks(batching, crowd) -> None:
    engine = batching(**crowd.LADDER, **BLOCKS)
    everyone = [engine.open() for _ in range(2)]
    for ids in ([5] * 30, [1], [2]):
        for request in everyone:
            request.submit(ids)
        crowd.run(engine)
    caches = [engine._conversations[request].place.cache for request in everyone]
    (stage, model) = next((s, m) for s, m in engine._runner._models.items() if s.capacity == 72)
    bound = {
        tensor.name: model._program._pointer(index)
        for index, tensor in enumerate(model._program._loaded.inputs)
    }
    spans = KVLayout(block=16).spans(stage.past)
    for slot, cache in enumerate(caches):
        places = cache._layout.places
        for number, span in enumerate(spans[: len(cache._pool)]):
            begin = cache._pool[number].memory.address
            for name, place in places.items():
                read = bound[f"vpux_ie_read_value_{span.of(name)}@slot{slot}"]
                assert read == begin + place.offset
