"""Adapters belong to a request and all its programs, and stay until they are changed."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from tests.npuw.conftest import SMALL, Talk
from tests.npuw.traits.lora.conftest import greedy, wear

from npuw_layer import Core
from npuw_layer.backends.level_zero_programs import RecordedProgram
from npuw_layer.errors import RequestBusy, StateError

PROMPT = np.random.default_rng(2).integers(0, 1000, 40).tolist()
LADDER = {"NPUW_LLM_GENERATE_PYRAMID_STEPS": "112,192"}


def alike(found: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max())


def test_the_next_variant_uses_the_adapter_too(talks, llama) -> None:
    adapter = llama.draw(8, seed=1)
    talk = wear(talks(llama.path, **LADDER), adapter)
    single = wear(talks(llama.path), adapter)
    variants = set()
    for ids in (PROMPT, *([token] for token in range(75))):
        assert alike(talk.tell(ids), single.tell(ids))
        variants.add(talk.request.execution_report()["KV variant"])
    assert len(variants) == 2


def test_requests_of_one_model_have_separate_adapters(talks, llama) -> None:
    adapters = [llama.draw(8, seed=1), llama.draw(3, seed=2), llama.off]
    alone = [greedy(wear(talks(llama.path), adapter), PROMPT, 10) for adapter in adapters]
    assert len({tuple(tokens) for tokens in alone}) == 3
    together = [wear(talks(llama.path), adapter) for adapter in adapters]
    said = [[int(talk.tell(PROMPT).argmax())] for talk in together]
    for _ in range(9):
        for talk, tokens in zip(together, said, strict=True):
            tokens.append(int(talk.tell(tokens[-1:]).argmax()))
    assert said == alone


def test_a_new_conversation_keeps_the_adapter_and_resetting_its_states_removes_it(
    talks, llama
) -> None:
    talk, plain = wear(talks(llama.path), llama.draw(8, seed=1)), talks(llama.path)
    first, without = greedy(talk, PROMPT, 6), greedy(plain, PROMPT, 6)
    assert first != without
    talk.reset()
    assert greedy(talk, PROMPT, 6) == first
    talk.reset()
    for state in talk.request.query_state():
        state.reset()
    assert greedy(talk, PROMPT, 6) == without


def test_an_empty_alpha_disables_an_adapter(talks, llama) -> None:
    adapter = llama.draw(8, seed=1)
    talk, plain = wear(talks(llama.path), adapter), talks(llama.path)
    off = {name: np.empty((1, 0), np.float32) for name in adapter if name.endswith(".alpha")}
    assert np.array_equal(wear(talk, off).tell(PROMPT), plain.tell(PROMPT))


def test_changing_an_adapter_keeps_stored_rows(talks, llama) -> None:
    """Rows before the change are those of the first adapter, later ones those of the second."""
    talk = wear(talks(llama.path), llama.draw(8, seed=1))
    talk.tell(PROMPT)
    caches = [s for s in talk.request.query_state() if "lora" not in s.name][:4]
    before = [cache.state.data.copy() for cache in caches]
    wear(talk, llama.draw(8, seed=2))
    changed = talk.tell([5]).copy()
    for cache, rows in zip(caches, before, strict=True):
        assert np.array_equal(cache.state.data[:, :, :40], rows)
    other = wear(talks(llama.path), llama.draw(8, seed=2))
    other.tell(PROMPT)
    assert not alike(other.tell([5]), changed), "differs from the second adapter from the start"


def test_a_cached_prompt_belongs_to_its_adapter(talks, llama) -> None:
    """K and V depend on adapters: blocks of one adapter are never used for another."""
    options = {
        "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
        "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE": 8,
        "NPUW_LLM_PREFILL_CHUNK_SIZE": 16,
    }
    adapters = [llama.off, llama.draw(8, seed=1), llama.draw(8, seed=1, alpha=2.0)]
    for cached_tokens in ("0 tokens", "32 tokens"):
        for adapter in adapters:
            cached, plain = talks(llama.path, **options), talks(llama.path)
            expected = greedy(wear(plain, adapter), PROMPT, 6)
            assert greedy(wear(cached, adapter), PROMPT, 6) == expected
            assert cached.request.execution_report()["prefix cache"] == cached_tokens


def test_a_saved_conversation_requires_its_adapter(talks, llama, tmp_path) -> None:
    adapter = llama.draw(8, seed=1)
    talk, other = wear(talks(llama.path), adapter), talks(llama.path)
    talk.tell(PROMPT)
    talk.request.save_state(tmp_path / "talk")
    with pytest.raises(StateError, match="with other adapters; set the same ones by query_state"):
        other.request.load_state(tmp_path / "talk")
    wear(other, adapter).request.load_state(tmp_path / "talk")
    other.said = 40
    assert np.array_equal(other.tell([5]), talk.tell([5]))
    other.reset()
    wear(other, llama.off).tell(PROMPT)
    other.request.save_state(tmp_path / "plain")
    with pytest.raises(StateError, match="it was saved without adapters"):
        talk.request.load_state(tmp_path / "plain")


def test_setting_states_waits_for_the_inference(talks, llama, monkeypatch) -> None:
    talk = talks(llama.path)
    talk.tell(PROMPT)
    state = talk.request.query_state()[-2]  # the last state counts tokens
    assert "lora" in state.name
    go_on, run = threading.Event(), RecordedProgram.run

    def held(program: RecordedProgram) -> None:
        go_on.wait()
        run(program)

    monkeypatch.setattr(RecordedProgram, "run", held)
    talk.request.start_async(
        {
            "input_ids": np.array([[5]]),
            "attention_mask": np.ones((1, 41), np.int64),
            "position_ids": np.array([[40]]),
        }
    )
    try:
        with pytest.raises(RequestBusy):
            state.state = np.empty((0, 0), np.float32)
    finally:
        go_on.set()
        talk.request.wait()


@pytest.mark.long
@pytest.mark.parametrize("options", [{"NPUW_WEIGHTS_OFFLOAD": "SYNC"}, {"NPUW_DEVICES": "CPU"}])
def test_adapters_work_with_other_options(talks, adapt, options) -> None:
    model = adapt("llama_deep_fp16")
    adapter = model.draw(8, seed=1)
    found = wear(talks(model.path, **options), adapter).tell(PROMPT)
    assert alike(found, wear(talks(model.path), adapter).tell(PROMPT))


def test_a_cached_or_imported_model_keeps_its_adapters(llama, tmp_path) -> None:
    options = SMALL | {"CACHE_DIR": str(tmp_path / "cache")}
    adapter = llama.draw(8, seed=1)
    compiled = Core().compile_model(llama.path, "NPU", options)
    expected = greedy(wear(Talk(compiled.create_infer_request()), adapter), PROMPT, 6)
    again = Core().compile_model(llama.path, "NPU", options)
    assert again.get_property("LOADED_FROM_CACHE")
    compiled.export_model(tmp_path / "model.blob")
    weights = {"WEIGHTS_PATH": str(llama.path.with_suffix(".bin"))}
    imported = Core().import_model(tmp_path / "model.blob", "NPU", weights)
    for model in (again, imported):
        assert greedy(wear(Talk(model.create_infer_request()), adapter), PROMPT, 6) == expected


def test_the_largest_rank_is_an_option(talks, llama) -> None:
    talk = talks(llama.path, NPUW_LLM_MAX_LORA_RANK=4)
    with pytest.raises(StateError, match=r"rank 4 at most, not \[8, .*NPUW_LLM_MAX_LORA_RANK"):
        wear(talk, llama.draw(8))
    adapter = llama.draw(4, seed=1)
    assert alike(wear(talk, adapter).tell(PROMPT), wear(talks(llama.path), adapter).tell(PROMPT))
    fewer, more = talks(llama.path, NPUW_LLM_MAX_LORA_RANK=4), talks(llama.path)
    assert fewer.request.memory().adapters * 8 == more.request.memory().adapters
