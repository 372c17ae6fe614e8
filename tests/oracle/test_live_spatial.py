"""Blocks in token tiles compared to the real NPUW, live: the same options, the same tokens.

The real NPUW has defects that no test can check: rows of skipped tiles (``NPUW_SPATIAL_DYN``) keep
earlier memory contents, so logits can be NaN; for compressed weights it takes attention for a
row-wise op, and ends in a shape error or a crash. Therefore f16 models are compared, and the real
NPUW runs all tiles.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from tests.oracle.real_npuw import EXACT, ON_CPU

from npuw_layer import Core

pytestmark = pytest.mark.oracle

FLOATS = {"NPUW_F16IC": "NO", "NPUW_DCOFF_TYPE": "", "NPUW_DCOFF_SCALE": "NO", "NPUW_DQ": "NO"}
"""Makes the real NPUW compute in f32 throughout; its blocks are functions, as by default."""

LENGTHS = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
EXPORTED = Path(__file__).resolve().parent.parent / "goldens" / "exported"

WAYS = {
    "whole prompts": {"NPUW_ONLINE_PIPELINE": "SPATIAL", "NPUW_LLM_PREFILL_HINT": "STATIC"},
    "chunks": {"NPUW_ONLINE_PIPELINE": "SPATIAL", "NPUW_LLM_PREFILL_CHUNK_SIZE": 64},
    "one by one": {"NPUW_ONLINE_PIPELINE": "COMPUTE", "NPUW_SPATIAL": "YES"},
}


def say(request: Any, prompt: np.ndarray) -> np.ndarray:
    """Generate greedy tokens after a prompt; return the logits of each step."""
    ids, said, found = prompt, 0, list[np.ndarray]()
    for _ in range(8):
        total = said + len(ids)
        inputs = {
            "input_ids": ids[None],
            "attention_mask": np.ones((1, total), np.int64),
            "position_ids": np.arange(said, total)[None],
            "beam_idx": np.zeros(1, np.int32),
        }
        request.infer(inputs)
        found.append(np.array(request.get_tensor("logits").data[0, -1]))
        said, ids = total, found[-1].argmax()[None]
    request.reset_state()
    return np.array(found)


@pytest.mark.parametrize(
    ("name", "way"), [*(("llama_deep_fp16", way) for way in WAYS), ("qwen3_deep_fp16", "chunks")]
)
def test_logits_of_blocks_in_token_tiles_equal_npuws(
    load_module: Any, tmp_path: Path, name: str, way: str
) -> None:
    """The last of the tiles of 24 is smaller; this stack skips tiles without tokens."""
    path = load_module(EXPORTED / "restore.py").restore(EXPORTED, name, tmp_path)
    asked = LENGTHS | WAYS[way] | {"NPUW_SPATIAL_NWAY": 24}
    real = ON_CPU | EXACT | FLOATS | asked | {"NPUW_SPATIAL_DYN": "NO"}
    theirs = ov.Core().compile_model(path, "NPU", real)
    own = {"INFERENCE_PRECISION_HINT": "f32", "NPUW_LLM_PREFILL_PYRAMID": "NO"}
    ours = Core().compile_model(path, "NPU", asked | own)
    requests = [each.create_infer_request() for each in (theirs, ours)]
    for length in (20, 128, 25):
        expected, found = (say(request, np.arange(length) * 7 % 97) for request in requests)
        assert np.array_equal(found.argmax(1), expected.argmax(1))
        assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()
