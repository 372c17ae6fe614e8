"""Conversations whose compute blocks run in token tiles return the same logits as without tiles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDENS

from npuw_layer import Core
from npuw_layer.errors import OptionError
from npuw_layer.execution.partition.model import LoadedParts
from npuw_layer.execution.token_tiles.program import LoadedRowTiles
from npuw_layer.options import parse_options

SPATIAL = {"NPUW_ONLINE_PIPELINE": "SPATIAL", "NPUW_SPATIAL_NWAY": 24}
FEW = {
    "NPUW_LLM_PREFILL_PYRAMID": "NO",
    "NPUW_LLM_PREFILL_ATTENTION_HINT": "STATIC",
    "NPUW_LLM_GENERATE_PYRAMID": "NO",
    "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "NO",
}
"""One prefill and one generate model."""
PROMPT = np.arange(128) * 7 % 97


def blocks(request: Any, stage: str) -> list[LoadedRowTiles]:
    """Return the tiled models of a static model, once for each call."""
    (parts,) = (m for s, m in request._compiled.models.items() if s.name == stage)
    assert isinstance(parts, LoadedParts)
    return [loaded for _, loaded in parts.calls() if isinstance(loaded, LoadedRowTiles)]


FEATURES: dict[str, dict[str, Any]] = {
    "whole prompts": {},
    "chunks": {
        "NPUW_LLM_PREFILL_CHUNK_SIZE": 64,
        "NPUW_LLM_PREFILL_PYRAMID": "YES",
        "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
    },
    "all tiles, channels": {"NPUW_SPATIAL_DYN": "NO", "NPUW_LLM_OPTIMIZE_V_TENSORS": "YES"},
    "one by one": {"NPUW_ONLINE_PIPELINE": "COMPUTE", "NPUW_SPATIAL": "YES"},
    "isolated among others": {
        "NPUW_ONLINE_PIPELINE": "NONE",
        "NPUW_ONLINE_ISOLATE": "COMPUTE,P:SDPA/attn",
        "NPUW_ONLINE_AVOID": "Op:Swish/NPU",
        "NPUW_SPATIAL": "YES",
        "NPUW_DEVICES": "NPU,CPU",
    },
    "interpreter, whole head": {"NPUW_DEVICES": "CPU", "NPUW_LLM_SHARED_HEAD": "NO"},
    "tiles of one": {"NPUW_SPATIAL_NWAY": 1, "NPUW_LLM_MAX_PROMPT_LEN": 64},
    "several tokens": {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8, "NPUW_SPATIAL_NWAY": 3},
}


@pytest.mark.matrix
@pytest.mark.parametrize("feature", FEATURES)
def test_a_conversation_equals_that_without_tiles(talks, feature: str) -> None:
    """Prompts that fill one row, some rows and all rows of tiles; steps between; and a rewind."""
    options = {**FEW, **SPATIAL, **FEATURES[feature]}
    ours = {name for name in options if "ONLINE" in name or "SPATIAL" in name}
    both = [talks(**{k: v for k, v in options.items() if k not in ours}), talks(**options)]
    longest = options.get("NPUW_LLM_MAX_PROMPT_LEN", 128)

    def tell(ids: np.ndarray | list[int], back: int = 0) -> None:
        expected, found = (talk.tell(ids, back) for talk in both)
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()

    for length in (25, 2, longest, 50):
        tell(PROMPT[:length])
        tell([3])
        tell([8], back=1)
        for talk in both:
            talk.reset()


@pytest.mark.matrix
@pytest.mark.parametrize("leaves_out", ["YES", "NO"])
def test_a_short_prompt_runs_only_its_own_tiles(talks, leaves_out: str) -> None:
    """A model of 128 tokens has six tiles, of which the last begins within another."""
    talk = talks(**FEW, **SPATIAL, NPUW_SPATIAL_DYN=leaves_out)
    tiles = blocks(talk.request, "prefill_128")
    assert len(tiles) == 3, "before the first attention, between the two, and after the last"
    for length, needed in ((2, 1), (24, 1), (25, 2), (120, 5), (121, 6), (128, 6)):
        before = [block.runs for block in tiles]
        talk.tell(PROMPT[:length])
        runs = 6 if leaves_out == "NO" else needed
        between = [block.runs - was for block, was in zip(tiles, before, strict=True)]
        assert between == [runs] * 3
        talk.reset()


def test_blocks_between_attentions_are_one_program(talks, tall) -> None:
    tiles = blocks(talks(tall, **FEW, **SPATIAL).request, "prefill_128")
    assert len(tiles) == 8
    assert len({id(block) for block in tiles[1:-1]}) == 1


def test_later_chunks_run_the_tiles_of_their_own_tokens(talks) -> None:
    """A later chunk's mask is longer than its tokens."""
    talk = talks(**FEW, **SPATIAL, NPUW_LLM_PREFILL_CHUNK_SIZE=64)
    first = blocks(talk.request, "prefill_64_after_64")[0]
    for length, runs in ((20, 1), (64, 3), (66, 4), (128, 6)):
        before = first.runs
        talk.tell(PROMPT[:length])
        assert first.runs - before == runs
        talk.reset()


def test_tokens_masked_by_the_caller_do_not_affect_others(talks) -> None:
    """Masked tokens before the first visible one are padding; those between others are not."""
    asked = {
        "input_ids": PROMPT[None, :100],
        "attention_mask": np.ones((1, 100), np.int64),
        "position_ids": np.arange(100)[None],
    }
    asked["attention_mask"][0, :30] = asked["attention_mask"][0, 60:70] = 0
    whole, tiled = (talks(**FEW, **more).request for more in ({}, SPATIAL))
    expected, found = (one.infer(asked)["logits"] for one in (whole, tiled))
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.fixture(scope="module")
def exported(restored: Callable[[Path, str], Path]) -> Callable[[str], Path]:
    """Return a model of the real exporter."""
    return lambda name: restored(GOLDENS / "exported", name)


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("name", "devices"),
    [
        ("llama_int4", "NPU"),
        ("llama_int8", "CPU"),
        ("phi3_int4", "NPU"),
        ("gemma2_int4", "CPU"),
        ("qwen3_fp16", "NPU"),
        ("gpt2_int4", "CPU"),
    ],
)
def test_exported_models_return_the_same_results(exported, talks, name: str, devices: str) -> None:
    path = exported(name)
    options = {**FEW, "NPUW_DEVICES": devices}
    whole, tiled = talks(path, **options), talks(path, **options, **SPATIAL)
    assert blocks(tiled.request, "prefill_128")
    for ids in (PROMPT[:30], [3], [14]):
        expected, found = whole.tell(ids), tiled.tell(ids)
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def test_tiled_models_are_cached_and_imported(tiny, talks, tmp_path: Path) -> None:
    lengths = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
    kept = {"CACHE_DIR": str(tmp_path), "INFERENCE_PRECISION_HINT": "f32"}
    config = FEW | SPATIAL | lengths | kept
    compiled = [Core().compile_model(tiny, "NPU", config) for _ in range(2)]
    assert [one.get_property("LOADED_FROM_CACHE") for one in compiled] == [False, True]
    content = compiled[0].export_model()
    imported = Core().import_model(content, "NPU", {"WEIGHTS_PATH": str(tiny)})
    expected = talks(**FEW).tell(PROMPT[:70])
    asked = {
        "input_ids": PROMPT[None, :70],
        "attention_mask": np.ones((1, 70), np.int64),
        "position_ids": np.arange(70)[None],
    }
    for one in (*compiled, imported):
        request = one.create_infer_request()
        assert blocks(request, "prefill_128")
        found = request.infer(asked)["logits"][0, -1]
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"NPUW_SPATIAL": "YES"}, "NPUW_SPATIAL: nothing is isolated with the tag compute"),
        (
            {"NPUW_SPATIAL": "YES", "NPUW_ONLINE_PIPELINE": "REP"},
            "which runs in tiles; set NPUW_ONLINE_PIP",
        ),
        ({"NPUW_SPATIAL": "YES", "NPUW_ONLINE_ISOLATE": "ATTN"}, "NPUW_ONLINE_ISOLATE to COMPUTE"),
        (SPATIAL | {"NPUW_SPATIAL_NWAY": 0}, "NPUW_SPATIAL_NWAY = 0: must be an integer from 1"),
        (SPATIAL | {"NPUW_WHISPER": "YES"}, "NPUW_SPATIAL: contradicts NPUW_WHISPER"),
        (SPATIAL | {"NPUW_ONLINE_ISOLATE": "ATTN"}, "cuts static models like"),
    ],
)
def test_contradictory_options_are_rejected(options: dict[str, Any], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        parse_options(options)


def test_host_routed_experts_and_tiled_blocks_contradict(tiny) -> None:
    routed = {"NPUW_LLM_PREFILL_MOE_HINT": "HOST_ROUTED"}
    with pytest.raises(OptionError, match="SPATIAL makes submodels that contain experts"):
        Core().compile_model(tiny, "NPU", SPATIAL | routed)
