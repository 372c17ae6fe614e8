"""Batches: rows are read one by one, and padding does not affect the outputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuw_layer import Core

CLOSE = {"rtol": 1e-4, "atol": 1e-4}
PADDING_ID = 1


def one_by_one(request: Any, texts: list[np.ndarray]) -> list[np.ndarray]:
    """Return the output of each text read alone."""
    each = [{"input_ids": t[None], "attention_mask": np.ones((1, len(t)), np.int64)} for t in texts]
    return [next(iter(request.infer(one).values()))[0] for one in each]


def padded(texts: list[np.ndarray], left: bool = False) -> dict[str, np.ndarray]:
    """Return a batch, padded as by tokenizers."""
    longest = max(map(len, texts))
    ids = np.full((len(texts), longest), PADDING_ID, np.int64)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        place = slice(longest - len(text), None) if left else slice(len(text))
        ids[row, place], mask[row, place] = text, 1
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.matrix
@settings(max_examples=4, deadline=None)
@given(lengths=st.lists(st.integers(1, 80), min_size=1, max_size=3), seed=st.integers(0, 99))
@pytest.mark.parametrize("name", ["llama", "bert", "xlmr"])
def test_a_batch_equals_its_texts_read_alone(
    compiled: Callable[..., Any], name: str, lengths: list[int], seed: int
) -> None:
    draw = np.random.default_rng(seed)
    texts = [draw.integers(10, 512, n) for n in lengths]
    request = compiled(name).create_infer_request()
    expected = one_by_one(request, texts)
    (found,) = request.infer(padded(texts)).values()
    assert len(found) == len(texts)
    for row, alone in zip(found, expected, strict=True):
        part = row[: len(alone)] if found.ndim > 2 else row
        np.testing.assert_array_equal(part, alone)
        assert not row[len(alone) :].any(), "outputs after the end of a text are 0"


def test_padding_on_the_left_does_not_affect_a_decoder(compiled: Callable[..., Any]) -> None:
    draw = np.random.default_rng(3)
    texts = [draw.integers(10, 512, n) for n in (125, 33, 1)]
    request = compiled("qwen3").create_infer_request()
    expected = one_by_one(request, texts)
    found = request.infer(padded(texts, left=True))["last_hidden_state"]
    for row, alone in zip(found, expected, strict=True):
        # Rotary positions are relative: the offset of a text does not matter.
        np.testing.assert_allclose(row[-len(alone) :], alone, rtol=1e-3, atol=5e-4)
        assert not row[: -len(alone)].any()


def test_rows_common_to_all_texts_are_passed_once(compiled: Callable[..., Any]) -> None:
    ids = np.random.default_rng(4).integers(10, 512, (3, 20))
    request = compiled("bert").create_infer_request()
    ones = np.ones_like(ids)
    whole = request.infer({"input_ids": ids, "attention_mask": ones, "token_type_ids": ones})
    common = {"input_ids": ids, "attention_mask": ones[:1], "token_type_ids": ones[:1]}
    found = request.infer(common)
    np.testing.assert_array_equal(found["last_hidden_state"], whole["last_hidden_state"])


@pytest.mark.matrix
@pytest.mark.parametrize(("chunk", "head"), [(0, "YES"), (32, "YES"), (32, "NO")])
def test_a_language_model_ranks_by_the_logits_of_each_texts_last_token(
    tiny: Path, chunk: int, head: str
) -> None:
    options = {
        "INFERENCE_PRECISION_HINT": "f32",
        "NPUW_LLM_MAX_PROMPT_LEN": 128,
        "NPUW_LLM_PREFILL_CHUNK_SIZE": chunk,
        "NPUW_LLM_SHARED_HEAD": head,
    }
    draw = np.random.default_rng(6)
    texts = [draw.integers(0, 97, n) for n in (90, 1, 33)]
    rank = Core().compile_model(tiny, "NPU", {**options, "NPUW_TEXT_RERANK": "YES"})
    found = rank.create_infer_request().infer(padded(texts, left=True))["logits"]
    assert found.shape == (3, 1, 97)
    talk = Core().compile_model(tiny, "NPU", options).create_infer_request()
    for row, text in zip(found, texts, strict=True):
        talk.reset_state()
        alone = {
            "input_ids": text[None],
            "attention_mask": np.ones((1, len(text)), np.int64),
            "position_ids": np.arange(len(text))[None],
        }
        np.testing.assert_allclose(row, talk.infer(alone)["logits"][0], **CLOSE)


def test_no_generate_model_is_compiled(tiny: Path) -> None:
    options = {"NPUW_TEXT_RERANK": "YES", "NPUW_LLM_MAX_PROMPT_LEN": 64}
    compiled = Core().compile_model(tiny, "NPU", options)
    names = [stage.name for stage in compiled._compiled.plan.stages]
    assert names == ["prefill_64", "lm_head"]


def test_a_common_prefix_of_texts_is_read_once(tiny: Path) -> None:
    options = {
        "INFERENCE_PRECISION_HINT": "f32",
        "NPUW_TEXT_RERANK": "YES",
        "NPUW_LLM_MAX_PROMPT_LEN": 128,
        "NPUW_LLM_PREFILL_CHUNK_SIZE": 32,
    }
    cached = {**options, "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES"}
    cached["NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE"] = 32
    draw = np.random.default_rng(7)
    query = draw.integers(0, 97, 64)
    batch = padded([np.concatenate([query, draw.integers(0, 97, 9)]) for _ in range(3)])
    plain = Core().compile_model(tiny, "NPU", options).create_infer_request()
    request = Core().compile_model(tiny, "NPU", cached).create_infer_request()
    found, expected = request.infer(batch)["logits"], plain.infer(batch)["logits"]
    np.testing.assert_allclose(found, expected, **CLOSE)
    runs = [len(one.split(" + ")) for one in request.execution_report()["texts"].split("; ")]
    assert runs[1:] == [1, 1]
    assert runs[0] > 1
