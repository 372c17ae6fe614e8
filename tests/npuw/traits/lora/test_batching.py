"""Batched conversations, each with its own adapter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.npuw.conftest import SMALL
from tests.npuw.traits.lora.conftest import greedy, wear

from npuw_layer import Core
from npuw_layer.batching import ContinuousBatching
from npuw_layer.errors import ModelError, StateError

PROMPTS = [np.random.default_rng(seed).integers(0, 1000, 9 + seed).tolist() for seed in range(5)]
SLOTS = {"NPUW_LLM_BATCH_SLOTS": "2,4"}


def together(
    engine: ContinuousBatching, adapters: Sequence[Any], count: int
) -> tuple[list[list[int]], set[int]]:
    """Return the generated tokens of conversations, and the slots of the models that ran."""
    requests = [engine.open(adapter) for adapter in adapters]
    said = [list[int]() for _ in requests]
    slots = set[int]()
    new = [prompt for prompt, _ in zip(PROMPTS, requests, strict=False)]
    for _ in range(count):
        futures = [each.submit(ids) for each, ids in zip(requests, new, strict=True)]
        while not all(future.done() for future in futures):
            slots.add(engine.step().slots)
        for tokens, future in zip(said, futures, strict=True):
            tokens.append(int(future.result().argmax()))
        new = [tokens[-1:] for tokens in said]
    for request in requests:
        request.close()
    return said, slots


@pytest.mark.long
@pytest.mark.parametrize("name", ["llama_fp16", "llama_deep_fp16"])
def test_each_slot_has_the_adapter_of_its_conversation(talks, adapt, name) -> None:
    """Ranks differ, one has none; later conversations take over slots and adapters."""
    model = adapt(name)
    adapters = [model.draw(8, seed=1), None, model.draw(32, seed=2), model.draw(1, seed=3)]
    alone = [
        greedy(wear(talks(model.path), adapter or model.off), prompt, 8)
        for adapter, prompt in zip(adapters, PROMPTS, strict=False)
    ]
    engine = Core().compile_model(model.path, "NPU", SMALL | SLOTS).create_batching()
    said, slots = together(engine, adapters, 8)
    assert said == alone
    assert 4 in slots
    turned = [adapters[1], adapters[0]]
    expected = [
        greedy(wear(talks(model.path), adapter or model.off), prompt, 8)
        for adapter, prompt in zip(turned, PROMPTS, strict=False)
    ]
    said, slots = together(engine, turned, 8)
    assert said == expected
    assert slots == {0, 2}
    engine.close()


@pytest.mark.long
def test_a_conversation_in_another_slot_keeps_its_adapter(talks, llama) -> None:
    """Three conversations share two slots, so that each takes slots of others."""
    adapters = [llama.draw(8, seed=seed) for seed in range(3)]
    alone = [wear(talks(llama.path), adapter) for adapter in adapters]
    config = SMALL | {"NPUW_LLM_BATCH_SLOTS": "2"}
    engine = Core().compile_model(llama.path, "NPU", config).create_batching(places=3)
    requests = [engine.open(adapter) for adapter in adapters]
    for turn in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1)):
        futures = {}
        for who in turn:
            ids = [7] if len(turn) > 1 else PROMPTS[who]
            futures[who] = requests[who].submit(ids), alone[who].tell(ids).copy()
        while not all(future.done() for future, _ in futures.values()):
            assert engine.step().slots in (0, len(turn))
        for future, expected in futures.values():
            assert np.abs(future.result() - expected).max() <= 1e-5 * np.abs(expected).max()
    engine.close()


@pytest.mark.long
def test_at_f16_batched_logits_equal_single_ones(talks, llama) -> None:
    options = {"INFERENCE_PRECISION_HINT": "f16"}
    adapters = [llama.draw(8, seed=1), llama.draw(4, seed=2)]
    alone = [
        greedy(wear(talks(llama.path, **options), adapter), prompt, 6)
        for adapter, prompt in zip(adapters, PROMPTS, strict=False)
    ]
    config = SMALL | SLOTS | options
    engine = Core().compile_model(llama.path, "NPU", config).create_batching()
    assert together(engine, adapters, 6)[0] == alone
    engine.close()


@pytest.mark.long
def test_an_adapted_head_is_kept_in_each_model_or_rejected(talks, adapt) -> None:
    model = adapt("llama_fp16", r"mlp|lm_head")
    with pytest.raises(ModelError, match="several conversations in one batch the LM head would"):
        Core().compile_model(model.path, "NPU", SMALL | SLOTS)
    options = SMALL | SLOTS | {"NPUW_LLM_SHARED_HEAD": "NO"}
    adapters = [model.draw(8, seed=1), model.draw(4, seed=2)]
    alone = [
        greedy(wear(talks(model.path), adapter), prompt, 6)
        for adapter, prompt in zip(adapters, PROMPTS, strict=False)
    ]
    engine = Core().compile_model(model.path, "NPU", options).create_batching()
    assert together(engine, adapters, 6)[0] == alone
    engine.close()


def test_an_adapter_that_does_not_fit_is_rejected_at_the_start_of_a_conversation(llama) -> None:
    engine = Core().compile_model(llama.path, "NPU", SMALL).create_batching()
    with pytest.raises(StateError, match="the model has no adapter state 'lora'"):
        engine.open({"lora": np.ones((1, 1), np.float32)})
    mixed = llama.draw(8) | {
        name: values for name, values in llama.draw(4).items() if name.endswith(".B")
    }
    with pytest.raises(StateError, match="have different ranks: A 8, alpha 8, B 4"):
        engine.open(mixed)
    engine.close()
