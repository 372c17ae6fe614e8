"""Conversations whose compute blocks run in tiles of tokens say what they say otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.errors import OptionError
from npuw_layer.options import parse_options
from npuw_layer.partition.model import LoadedParts
from npuw_layer.spatial.program import LoadedRowTiles

SPATIAL = {"NPUW_ONLINE_PIPELINE": "SPATIAL", "NPUW_SPATIAL_NWAY": 24}
PROMPT = np.arange(128) * 7 % 97


def blocks(request: Any, stage: str) -> list[LoadedRowTiles]:
    """What runs in tiles of a static model, once for each call."""
    (parts,) = (m for s, m in request._compiled.models.items() if s.name == stage)
    assert isinstance(parts, LoadedParts)
    return [loaded for _, loaded in parts.calls() if isinstance(loaded, LoadedRowTiles)]


FEATURES: dict[str, dict[str, Any]] = {
    "whole prompts": {"NPUW_LLM_PREFILL_HINT": "STATIC"},
    "chunks": {"NPUW_LLM_PREFILL_CHUNK_SIZE": 64},
    "one chunk": {"NPUW_LLM_PREFILL_PYRAMID": "NO", "NPUW_LLM_PREFILL_ATTENTION_HINT": "STATIC"},
    "all tiles": {"NPUW_SPATIAL_DYN": "NO"},
    "tiles of one": {"NPUW_SPATIAL_NWAY": 1, "NPUW_LLM_MAX_PROMPT_LEN": 64},
    "tiles of all": {"NPUW_SPATIAL_NWAY": 999},
    "one by one": {"NPUW_ONLINE_PIPELINE": "COMPUTE", "NPUW_SPATIAL": "YES"},
    "isolated": {
        "NPUW_ONLINE_PIPELINE": "NONE",
        "NPUW_ONLINE_ISOLATE": "COMPUTE,P:SDPA/attn,Op:Swish/gate",
        "NPUW_SPATIAL": "YES",
    },
    "elsewhere": {
        "NPUW_ONLINE_PIPELINE": "NONE",
        "NPUW_ONLINE_ISOLATE": "COMPUTE",
        "NPUW_ONLINE_AVOID": "Op:Swish/NPU",
        "NPUW_SPATIAL": "YES",
        "NPUW_DEVICES": "NPU,CPU",
    },
    "interpreter": {"NPUW_DEVICES": "CPU"},
    "not folded": {"NPUW_FOLD": "NO"},
    "whole head": {"NPUW_LLM_SHARED_HEAD": "NO"},
    "channels": {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES"},
    "prefixes": {"NPUW_LLM_ENABLE_PREFIX_CACHING": "YES", "NPUW_LLM_PREFILL_CHUNK_SIZE": 64},
    "several tokens": {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8, "NPUW_SPATIAL_NWAY": 3},
    "blocks": {
        "NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES",
        "NPUW_LLM_PREFILL_CHUNK_SIZE": 64,
    },
}


@pytest.mark.parametrize("feature", FEATURES)
def test_a_conversation_is_what_it_is_without(talks, tall, feature: str) -> None:
    """Prompts of one token in a tile, of some, and of all; steps between; and a rewind."""
    options = SPATIAL | FEATURES[feature]
    ours = {name: value for name, value in options.items() if "ONLINE" in name or "SPATIAL" in name}
    others = {name: value for name, value in options.items() if name not in ours}
    longest = options.get("NPUW_LLM_MAX_PROMPT_LEN", 128)
    both = [talks(tall, **others), talks(tall, **options)]

    def tell(ids: np.ndarray | list[int], back: int = 0) -> None:
        expected, found = (talk.tell(ids, back) for talk in both)
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()

    for length in (25, 2, longest, 50):
        tell(PROMPT[:length])
        tell([3])
        tell([14])
        tell([8], back=1)
        for talk in both:
            talk.reset()


@pytest.mark.parametrize("leaves_out", ["YES", "NO"])
def test_a_short_prompt_pays_for_its_tiles_alone(talks, tall, leaves_out: str) -> None:
    """Of a model of 128 tokens there are six tiles, of which the last begins within another."""
    talk = talks(
        tall,
        **SPATIAL,
        NPUW_SPATIAL_DYN=leaves_out,
        NPUW_LLM_PREFILL_PYRAMID="NO",
        NPUW_LLM_PREFILL_HINT="STATIC",
        NPUW_LLM_ENABLE_CONTINUOUS_PREFILL="NO",
    )
    tiles = blocks(talk.request, "prefill_128")
    assert len(tiles) == 8, "before each attention, between, and behind the last"
    assert len({id(block) for block in tiles}) == 3, "those between are one program"
    for length, needed in ((2, 1), (24, 1), (25, 2), (120, 5), (121, 6), (128, 6)):
        before = [block.runs for block in tiles]
        talk.tell(PROMPT[:length])
        runs = 6 if leaves_out == "NO" else needed
        between = [block.runs - was for block, was in zip(tiles, before, strict=True)]
        assert between == [runs, *[6 * runs] * 6, runs], "of equal ones all are counted"
        talk.reset()


def test_chunks_behind_others_run_the_tiles_of_their_own_tokens(talks, tall) -> None:
    """A mask is longer there than a chunk has tokens."""
    talk = talks(
        tall,
        **SPATIAL,
        NPUW_LLM_PREFILL_PYRAMID="NO",
        NPUW_LLM_PREFILL_CHUNK_SIZE=64,
        NPUW_LLM_PREFILL_ATTENTION_HINT="STATIC",
        NPUW_LLM_ENABLE_CONTINUOUS_PREFILL="NO",
    )
    first = blocks(talk.request, "prefill_64_after_64")[0]
    for length, runs in ((20, 1), (64, 3), (66, 4), (128, 6)):
        before = first.runs
        talk.tell(PROMPT[:length])
        assert first.runs - before == runs
        talk.reset()


def test_tokens_that_the_caller_masks_are_no_padding_between_others(talks, tall) -> None:
    """Before the first one they are; what comes of the others is the same."""
    options = {"NPUW_LLM_PREFILL_HINT": "STATIC", "NPUW_LLM_PREFILL_PYRAMID": "NO"}
    asked = {
        "input_ids": PROMPT[None, :100],
        "attention_mask": np.ones((1, 100), np.int64),
        "position_ids": np.arange(100)[None],
    }
    asked["attention_mask"][0, :30] = asked["attention_mask"][0, 60:70] = 0
    whole, tiled = (talks(tall, **options, **more).request for more in ({}, SPATIAL))
    expected, found = (one.infer(asked)["logits"] for one in (whole, tiled))
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.fixture(scope="module")
def exported(load_module, tmp_path_factory) -> Callable[[str], Path]:
    """Give a model that the real exporter wrote."""
    folder = Path(__file__).resolve().parents[2] / "goldens" / "exported"
    restore = load_module(folder / "restore.py").restore
    return lambda name: restore(folder, name, tmp_path_factory.mktemp(name))


@pytest.mark.parametrize("devices", ["NPU", "CPU"])
@pytest.mark.parametrize(
    "name", ["llama_int4", "llama_int8", "phi3_int4", "gemma2_int4", "qwen3_fp16", "gpt2_int4"]
)
def test_exported_models_say_the_same(exported, talks, name: str, devices: str) -> None:
    path = exported(name)
    options = {"NPUW_DEVICES": devices, "NPUW_LLM_PREFILL_PYRAMID": "NO"}
    whole, tiled = talks(path, **options), talks(path, **options, **SPATIAL)
    assert blocks(tiled.request, "prefill_128")
    for ids in (PROMPT[:30], [3], [14]):
        expected, found = whole.tell(ids), tiled.tell(ids)
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def test_programs_are_smaller(tall, tmp_path: Path) -> None:
    """They are those of 16 tokens, not of 1,024: of blocks; attention stays what it is."""
    sizes: dict[str, int] = {}
    for name, options in (("compute", {}), ("spatial", {"NPUW_SPATIAL": "YES"})):
        config = {
            "NPUW_ONLINE_PIPELINE": "COMPUTE",
            "NPUW_SPATIAL_NWAY": 16,
            "NPUW_LLM_PREFILL_PYRAMID": "NO",
            "CACHE_DIR": str(tmp_path / name),
        }
        Core().compile_model(tall, "NPU", config | options)
        sizes[name] = max(path.stat().st_size for path in (tmp_path / name).glob("*.blob"))
    assert sizes["spatial"] < 0.5 * sizes["compute"]


def test_it_is_found_in_the_cache_and_imported(tall, talks, tmp_path: Path) -> None:
    options = SPATIAL | {"CACHE_DIR": str(tmp_path), "NPUW_LLM_MAX_PROMPT_LEN": 128}
    config = options | {"INFERENCE_PRECISION_HINT": "f32", "NPUW_LLM_MIN_RESPONSE_LEN": 64}
    compiled = [Core().compile_model(tall, "NPU", config) for _ in range(2)]
    assert [one.get_property("LOADED_FROM_CACHE") for one in compiled] == [False, True]
    content = compiled[0].export_model()
    imported = Core().import_model(content, "NPU", {"WEIGHTS_PATH": str(tall)})
    expected = talks(tall).tell(PROMPT[:70])
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
        ({"NPUW_SPATIAL": "YES"}, "NPUW_SPATIAL: runs what is isolated as compute"),
        ({"NPUW_SPATIAL": "YES", "NPUW_ONLINE_PIPELINE": "REP"}, "nothing is; set NPUW_ONLINE_PIP"),
        ({"NPUW_SPATIAL": "YES", "NPUW_ONLINE_ISOLATE": "ATTN"}, "NPUW_ONLINE_ISOLATE to COMPUTE"),
        (SPATIAL | {"NPUW_SPATIAL_NWAY": 0}, "NPUW_SPATIAL_NWAY = 0: must be an integer from 1"),
        (SPATIAL | {"NPUW_WHISPER": "YES"}, "NPUW_SPATIAL: not with NPUW_WHISPER"),
        (SPATIAL | {"NPUW_ONLINE_ISOLATE": "ATTN"}, "and so does"),
    ],
)
def test_what_says_nothing_sensible_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(OptionError, match=why):
        parse_options(options)


def test_experts_that_the_host_routes_are_no_blocks(tiny) -> None:
    routed = {"NPUW_LLM_PREFILL_MOE_HINT": "HOST_ROUTED"}
    with pytest.raises(OptionError, match="SPATIAL makes submodels with experts among"):
        Core().compile_model(tiny, "NPU", SPATIAL | routed)
