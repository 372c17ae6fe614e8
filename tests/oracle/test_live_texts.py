"""Embedding and reranking models compared to OpenVINO's CPU plugin and to the real NPUW, live.

The real NPUW returns last_hidden_state for NPUW_LLM_MAX_PROMPT_LEN tokens, 0 after the text; this
stack's ends with the batch. The last tests show NPUW's defects, and compare this stack to the CPU
plugin instead. If one of these tests fails with a newer ``openvino``, the defect is fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from tests.oracle.real_npuw import EXACTLY, ON_CPU

from npuw_layer import Core

pytestmark = pytest.mark.oracle

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
PADDING_ID = 1
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}
OURS = EXACT | {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_PREFILL_CHUNK_SIZE": 32}
NPUW = (
    ON_CPU
    | EXACTLY
    | {
        "NPUW_TEXT_EMBED": "YES",
        "NPUW_LLM_SHARED_HEAD": "NO",
        "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    }
)
"""Options of the real NPUW for texts, without an NPU, in f32 throughout."""

CLOSE = {"rtol": 1e-4, "atol": 1e-4}


@pytest.fixture(scope="module")
def model(restored: Callable[[Path, str], Path]) -> Callable[..., Path]:
    """Return a function that returns the IR of a name."""
    return lambda name, folder="texts": restored(GOLDENS / folder, name)


def batch(*lengths: int, seed: int = 1, left: bool = False) -> dict[str, np.ndarray]:
    """Draw texts of some lengths, padded."""
    draw = np.random.default_rng(seed)
    ids = np.full((len(lengths), max(lengths)), PADDING_ID, np.int64)
    mask = np.zeros_like(ids)
    for row, n in enumerate(lengths):
        place = slice(max(lengths) - n, None) if left else slice(n)
        ids[row, place], mask[row, place] = draw.integers(10, 512, n), 1
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": (np.arange(max(lengths)) > 4).astype(np.int64) * mask,
        "position_ids": np.maximum(mask.cumsum(1) - 1, 0),
        "beam_idx": np.arange(len(lengths), dtype=np.int32),
    }


def known(compiled: Any, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the inputs that a model has."""
    names = {name for port in compiled.inputs for name in port.get_names()}
    return {name: np.ascontiguousarray(value) for name, value in given.items() if name in names}


def on_cpu(path: Path, given: dict[str, np.ndarray]) -> np.ndarray:
    compiled = ov.Core().compile_model(path, "CPU", EXACT | {"KV_CACHE_PRECISION": "f32"})
    return compiled(known(compiled, given))[0]


Reader = Callable[[dict[str, np.ndarray]], np.ndarray]


def npuw(path: Path, chunk: int = 32) -> Reader:
    """Return a reader of texts in the real NPUW."""
    lengths = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_PREFILL_CHUNK_SIZE": chunk}
    compiled = ov.Core().compile_model(path, "NPU", NPUW | EXACT | lengths)
    request = compiled.create_infer_request()

    def read(given: dict[str, np.ndarray]) -> np.ndarray:
        for name, value in known(compiled, given).items():
            request.set_tensor(name, ov.Tensor(value))
        request.infer()
        return np.array(request.get_tensor("last_hidden_state").data)

    return read


def ours(path: Path, kind: str, **options: Any) -> Reader:
    """Return a reader of texts in this stack."""
    compiled = Core().compile_model(path, "NPU", {**OURS, kind: "YES", **options})
    request = compiled.create_infer_request()
    return lambda given: next(iter(request.infer(known(compiled, given)).values()))


def by_npuw(path: Path, given: dict[str, np.ndarray]) -> np.ndarray:
    return npuw(path)(given)


def by_us(path: Path, given: dict[str, np.ndarray], kind: str, **options: Any) -> np.ndarray:
    return ours(path, kind, **options)(given)


@pytest.mark.parametrize("name", ["qwen3", "llama", "qwen2_windows", "gemma3", "bert"])
def test_embeddings_of_a_batch_equal_the_cpus(model: Any, name: str) -> None:
    path, given = model(name), batch(97, 1, 32, 33, 64)
    expected = on_cpu(path, given) * given["attention_mask"][..., None]
    np.testing.assert_allclose(by_us(path, given, "NPUW_TEXT_EMBED"), expected, **CLOSE)


def test_scores_of_a_cross_encoder_equal_the_cpus(model: Any) -> None:
    path, given = model("xlmr"), batch(97, 3, 32, 33)
    np.testing.assert_allclose(by_us(path, given, "NPUW_TEXT_RERANK"), on_cpu(path, given), **CLOSE)


def test_ops_that_the_npu_lacks_run_on_the_cpu(model: Any) -> None:
    """A decoder with a score head finds its last token itself, with a TopK of integers."""
    path, given = model("qwen3_score"), batch(97, 3, 32, 33)
    found = by_us(path, given, "NPUW_TEXT_RERANK", NPUW_DEVICES="NPU,CPU")
    np.testing.assert_allclose(found, on_cpu(path, given), **CLOSE)


@pytest.mark.parametrize("chunk", [0, 32])
def test_scores_of_a_language_model_equal_the_cpus(model: Any, chunk: int) -> None:
    path, given = model("qwen3_fp16", "exported"), batch(97, 1, 32, 33, left=True)
    found = by_us(path, given, "NPUW_TEXT_RERANK", NPUW_LLM_PREFILL_CHUNK_SIZE=chunk)
    np.testing.assert_allclose(found, on_cpu(path, given)[:, -1:], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "chunk"), [("qwen3", 0), ("qwen3", 32), ("bert", 0), ("bert", 32)]
)
def test_the_embedding_of_a_text_equals_the_real_npuws(model: Any, name: str, chunk: int) -> None:
    path = model(name)
    theirs = npuw(path, chunk)
    own = ours(path, "NPUW_TEXT_EMBED", NPUW_LLM_PREFILL_CHUNK_SIZE=chunk)
    for n in (1, 32, 33, 97):
        given = batch(n, seed=n)
        expected = theirs(given)
        assert expected.shape[1] == 128
        assert not expected[:, n:].any()
        np.testing.assert_allclose(own(given), expected[:, :n], **CLOSE)


def test_npuw_takes_a_bidirectional_model_for_a_causal_one(model: Any) -> None:
    path, given = model("gemma3"), batch(50)
    expected = on_cpu(path, given)
    assert np.abs(by_npuw(path, given)[:, :50] - expected).max() > 1
    np.testing.assert_allclose(by_us(path, given, "NPUW_TEXT_EMBED"), expected, **CLOSE)


def test_npuw_drops_positions_of_a_decoder_without_repeated_heads(model: Any) -> None:
    path, given = model("llama"), batch(50)
    expected = on_cpu(path, given)
    assert np.abs(by_npuw(path, given)[:, :50] - expected).max() > 1
    np.testing.assert_allclose(by_us(path, given, "NPUW_TEXT_EMBED"), expected, **CLOSE)


def test_npuw_rejects_layers_with_different_masks(model: Any) -> None:
    path, given = model("qwen2_windows"), batch(50)
    with pytest.raises(RuntimeError, match="check_sdpa_nodes"):
        by_npuw(path, given)
    expected = on_cpu(path, given)
    np.testing.assert_allclose(by_us(path, given, "NPUW_TEXT_EMBED"), expected, **CLOSE)
