"""Batched exported models: folded layers, windows, biases, rejections.

``test_exported_ir`` compares the logits of one conversation with the real OpenVINO.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw.splitting import split

from compiler_layer.compile import compile_model
from compiler_layer.explain import explain
from compiler_layer.pipeline import Options
from npuw_layer import Core
from npuw_layer.errors import ModelError
from npuw_layer.storage.read_model import read_model

EXPORTED = Path(__file__).resolve().parent.parent / "goldens" / "exported"
CONFIG = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_PREFILL_PYRAMID": "NO",
    "NPUW_LLM_BATCH_SLOTS": 4,
    "INFERENCE_PRECISION_HINT": "f32",
}


@pytest.fixture
def exported(load_module: Callable[[Path], Any], tmp_path: Path) -> Callable[[str], Path]:
    restore = load_module(EXPORTED / "restore.py").restore
    return lambda name: restore(EXPORTED, name, tmp_path)


@pytest.mark.matrix
@pytest.mark.parametrize(
    "name",
    [
        *("llama_deep_fp16", "mistral_deep_fp16", "gemma2_fp16", "gemma3_deep_fp16"),
        *("phi3_deep_fp16", "gpt2_deep_fp16", "bloom_fp16", "qwen3_moe_fp16", "falcon_fp16"),
    ],
)
def test_batched_conversations_generate_the_tokens_of_single_ones(exported, name: str) -> None:
    expected = np.load(EXPORTED / f"{name}.npz")
    model = Core().compile_model(exported(name), "NPU", CONFIG)
    engine = model.create_batching()
    requests = [engine.open() for _ in range(3)]
    prompts = [expected[f"prompt_{length}"][0] for length in (100, 7, 1)]
    futures = [one.submit(ids) for one, ids in zip(requests, prompts, strict=True)]
    said: list[list[int]] = [[], [], []]
    for _ in range(len(expected["greedy"])):
        while engine.wait(0):
            engine.step()
        for number, future in enumerate(futures):
            said[number].append(int(future.result(0).argmax()))
            futures[number] = requests[number].submit(said[number][-1:])
    assert said[0] == expected["greedy"].tolist()
    for ids, tokens in zip(prompts[1:], said[1:], strict=True):
        assert tokens == greedy(model, ids, len(tokens))


def greedy(model: Any, ids: np.ndarray, count: int) -> list[int]:
    """Return the likeliest tokens of a conversation in a model without batching."""
    request, said, past = model.create_infer_request(), list[int](), 0
    for _ in range(count):
        inputs = {
            "input_ids": np.asarray(ids, np.int64)[None],
            "attention_mask": np.ones((1, past + len(ids)), np.int64),
            "position_ids": np.arange(past, past + len(ids))[None],
        }
        said.append(int(request.infer(inputs)["logits"][0, -1].argmax()))
        past, ids = past + len(ids), np.array(said[-1:])
    return said


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("name", "why"),
    [("mpt_fp16", "without a dimension for several"), ("gptj_fp16", "GatherElements")],
)
def test_a_model_without_batching_names_the_option_to_set(exported, name: str, why: str) -> None:
    with pytest.raises(ModelError, match=f"4 conversations in .*{why}.*NPUW_LLM_BATCH_SLOTS = 1"):
        Core().compile_model(exported(name), "NPU", CONFIG)


def test_folded_and_unfolded_layers_compile_to_equal_costs(exported) -> None:
    model = read_model(exported("llama_deep_fp16"))
    blobs = [
        compile_model(split(model, 1, 127, slots=4), Options(fold=fold), "llama")
        for fold in (True, False)
    ]
    costs = [[(c.transfers, c.products, c.ddr_bytes) for c in explain(b).layers] for b in blobs]
    assert costs[0] == costs[1]


def test_a_batch_reads_weights_once_and_each_cache_once(llama_8m: Path) -> None:
    """Further conversations only move their caches and rows, without copies."""
    model, past = read_model(llama_8m), 1151
    moved = []
    for slots in (2, 8):
        blob = compile_model(split(model, 1, past, slots), Options())
        moved.append(sum(layer.ddr_bytes for layer in explain(blob).layers))
    reads = [v.read for v in model.variables() if v.read is not None]
    sizes = [read.output.type.get_shape() for read in reads]
    cache = sum(2 * past * heads * width for _, heads, _, width in sizes)
    assert 6 * cache < moved[1] - moved[0] < 1.3 * 6 * cache
