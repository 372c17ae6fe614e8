"""LongRoPE: the longest position of an inference, not of a chunk, selects the rotary factors.

The model's original context is 64 tokens. The goldens are OpenVINO's logits of prompts of 40, 62
and 100 tokens, and of five tokens after each.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDENS
from tests.npuw.conftest import Talk

from compiler_layer.dialects.ov.elementwise import Cos, Sin
from npuw_layer import Core
from npuw_layer.errors import ModelError, TensorError
from npuw_layer.llm.graph.pipeline import stage_graph
from npuw_layer.llm.plan.stages import plan
from npuw_layer.options import parse_options
from npuw_layer.storage.read_model import read_model
from npuw_layer.traits.long_rope.trait import LONG_ROPE, long_from

LONGROPE = GOLDENS / "longrope"
CONTEXT = 64
LENGTHS = {
    "NPUW_LLM_MAX_PROMPT_LEN": 128,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "INFERENCE_PRECISION_HINT": "f32",
}
CHUNKS = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32}
BLOCK = "NPUW_LLM_PREFIX_CACHING_BLOCK_SIZE"
ATTENTION = ("NPUW_LLM_PREFILL_ATTENTION_HINT", "NPUW_LLM_GENERATE_ATTENTION_HINT")


@pytest.fixture(scope="module")
def said() -> dict[str, np.ndarray]:
    return dict(np.load(LONGROPE / "phi3_fp16.npz"))


@pytest.fixture(scope="module")
def phi3(restored: Any) -> Path:
    return restored(LONGROPE, "phi3_fp16")


def stories(talk: Talk, said: dict[str, np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield logits of prompts and of the tokens after them, and OpenVINO's."""
    for count in (40, 100, 62, 40):
        talk.reset()
        expected = said[f"logits_{count}"]
        ids = said["ids"]
        found = [talk.tell(ids[:count])]
        found += [talk.tell(ids[count + n : count + n + 1]) for n in range(len(expected) - 1)]
        yield np.array(found), expected


@pytest.mark.matrix
@pytest.mark.parametrize(
    "options",
    [
        {},
        CHUNKS,
        {**CHUNKS, "NPUW_LLM_CACHE_ROPE": "NO"},
        {**CHUNKS, "NPUW_DEVICES": "CPU"},
        {**CHUNKS, **dict.fromkeys(ATTENTION, "HFA")},
        {**CHUNKS, "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"},
        {
            **CHUNKS,
            "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
            BLOCK: 32,
        },
    ],
    ids=lambda options: " ".join(f"{k.removeprefix('NPUW_')}={v}" for k, v in options.items()),
)
def test_logits_equal_openvinos(phi3, said, options) -> None:
    talk = Talk(Core().compile_model(phi3, "NPU", LENGTHS | options).create_infer_request())
    for found, expected in stories(talk, said):
        assert np.abs(found - expected).max() < 2e-6 * np.abs(expected).max()


@pytest.mark.long
def test_cached_rows_of_short_prompts_are_not_used_for_long_ones(phi3, said) -> None:
    prefixes = {"NPUW_LLM_ENABLE_PREFIX_CACHING": "YES", BLOCK: 32}
    core = Core()
    request = core.compile_model(phi3, "NPU", LENGTHS | CHUNKS | prefixes).create_infer_request()
    talk, ids = Talk(request), said["ids"]
    cached = []
    for count in (62, 62, 100, 100, 62):
        talk.reset()
        talk.tell(ids[:count])
        cached.append(int(request.execution_report()["prefix cache"].split()[0]))
    assert cached == [0, 32, 0, 96, 32]


def test_several_conversations_require_tables(phi3) -> None:
    options = LENGTHS | {"NPUW_LLM_BATCH_SLOTS": "4", "NPUW_LLM_CACHE_ROPE": "NO"}
    with pytest.raises(ModelError, match="leave NPUW_LLM_CACHE_ROPE on"):
        Core().compile_model(phi3, "NPU", options)


def test_the_inputs_name_has_the_first_long_position(phi3) -> None:
    options = parse_options(LENGTHS | CHUNKS)
    model = read_model(phi3)
    for stage in plan(options).stages[:-1]:
        graph = stage_graph(model, stage, options)
        assert long_from(port.name for port in graph.inputs) == (f"{LONG_ROPE}{CONTEXT}", CONTEXT)
        assert not [op for op in graph.body.ops if isinstance(op, Sin | Cos)]
    assert long_from(port.name for port in model.inputs) is None, "the model is not changed"


@pytest.mark.long
def test_positions_without_factors_are_rejected_before_anything_changes(demo, tmp_path) -> None:
    """Transformers' dynamic frequencies are the unscaled ones up to max_position_embeddings."""
    dynamic = shutil.copytree(demo, tmp_path / "dynamic")
    config = json.loads((demo / "config.json").read_text())
    scaling = {"rope_type": "dynamic", "factor": 2.0}
    config |= {"max_position_embeddings": CONTEXT, "rope_scaling": scaling}
    (dynamic / "config.json").write_text(json.dumps(config))
    ids = np.arange(3, 3 + CONTEXT + 1)
    said: list[np.ndarray] = []
    for folder in (demo, dynamic):
        talk = Talk(Core().compile_model(folder, "NPU", LENGTHS).create_infer_request())
        said.append(talk.tell(ids[: CONTEXT - 1]))
        said.append(talk.tell(ids[CONTEXT - 1 : CONTEXT]))
    with pytest.raises(TensorError, match=r"=64 on .* change with each length; shorten"):
        talk.tell(ids[CONTEXT:])
    np.testing.assert_allclose(said[2:], said[:2], atol=2e-5)
    talk.reset()
    np.testing.assert_array_equal(talk.tell(ids[: CONTEXT - 1]), said[2])
