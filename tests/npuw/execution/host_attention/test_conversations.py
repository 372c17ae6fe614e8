"""Conversations with isolated attention return the logits of STATIC attention."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.errors import OptionError
from npuw_layer.execution.devices.placed import PlacedModel
from npuw_layer.execution.host_attention.dynamic_device import LoadedDynamic
from npuw_layer.execution.host_attention.flash_model import LoadedFlash
from npuw_layer.execution.partition.model import LoadedParts
from npuw_layer.llm.plan.stages import StageKind, plan
from npuw_layer.llm.request.infer_request import InferRequest
from npuw_layer.options import parse_options

SHORT = {"NPUW_LLM_MAX_PROMPT_LEN": 128, "NPUW_LLM_PREFILL_CHUNK_SIZE": 64}
CHUNKS = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 64}
BLOCKS = {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES"}
IDS = np.random.default_rng(5).integers(0, 97, 400).tolist()


def hints(kind: str) -> dict[str, str]:
    return {
        "NPUW_LLM_PREFILL_ATTENTION_HINT": kind,
        "NPUW_LLM_GENERATE_ATTENTION_HINT": kind,
        **({"NPUW_DEVICES": "NPU,CPU"} if kind == "DYNAMIC" else {}),
    }


FEATURES: dict[str, dict[str, Any]] = {
    "chunks of 32": {},
    "chunks of 64, several tokens": {
        "NPUW_LLM_PREFILL_CHUNK_SIZE": 64,
        "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8,
    },
    "f16": {"INFERENCE_PRECISION_HINT": "f16"},
    "i8 cache": {"KV_CACHE_PRECISION": "i8"},
    "f8 cache": {"KV_CACHE_PRECISION": "f8e4m3"},
    "f32 cache": {"KV_CACHE_PRECISION": "f32", "INFERENCE_PRECISION_HINT": "f16"},
    "blocks of f16": {**BLOCKS, "KV_CACHE_PRECISION": "f16"},
    "blocks": BLOCKS,
    "blocks of 8 bits": {**BLOCKS, "KV_CACHE_PRECISION": "i8"},
    "variants": {"NPUW_LLM_GENERATE_PYRAMID_STEPS": "72,128,192"},
    "prefixes, whole head": {
        "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
        "NPUW_LLM_SHARED_HEAD": "NO",
    },
    "interpreter": {"NPUW_DEVICES": "CPU"},
    "transposed, copied rows": {
        "NPUW_LLM_OPTIMIZE_V_TENSORS": "YES",
        "NPUW_LLM_KV_SWITCHOVER": "COPY",
    },
    "truncated": {"NPUW_LLM_ON_FULL": "TRUNCATE"},
    "sliding": {"NPUW_LLM_ON_FULL": "SLIDE", "NPUW_LLM_SINK_TOKENS": 4},
}
DYNAMIC = (
    *("chunks of 32", "i8 cache", "blocks of f16", "variants", "chunks of 64, several tokens"),
    *("interpreter", "transposed, copied rows"),
)
"""Features that the number of read rows may affect; all kinds share the rest."""
CLOSE = {"blocks of f16": 2e-4, "f32 cache": 1e-2} | {
    "blocks of 8 bits": 5e-3,
    "f16": 1e-2,
    "i8 cache": 5e-3,
    "f8 cache": 3e-2,
}


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("kind", "feature"),
    [*(("HFA", feature) for feature in FEATURES), *(("DYNAMIC", feature) for feature in DYNAMIC)],
)
def test_a_conversation_equals_that_of_static_attention(talks, kind: str, feature: str) -> None:
    """A prompt, steps until the cache is full where possible, a rewind, another prompt."""
    options = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32, **FEATURES[feature]}
    both = [talks(**hints("STATIC"), **options), talks(**{**hints(kind), **options})]

    def tell(ids: list[int], back: int = 0) -> None:
        expected, found = (talk.tell(ids, back) for talk in both)
        assert np.abs(found - expected).max() <= CLOSE.get(feature, 2e-5) * np.abs(expected).max()
        assert feature in CLOSE or found.argmax() == expected.argmax()

    tell(IDS[:70])
    for token in IDS[70 : 200 if "NPUW_LLM_ON_FULL" in options else 76]:
        tell([token])
    tell([3], back=5)
    for talk in both:
        talk.reset()
    tell(IDS[:45])
    tell([3])


def attentions(talk: Any, kind: StageKind) -> list[LoadedFlash | LoadedDynamic]:
    """Return the attentions of a conversation's models of a kind, equal layers once."""
    found: list[LoadedFlash | LoadedDynamic] = []
    for stage, loaded in talk.request._compiled.models.items():
        if stage.kind is kind:
            assert isinstance(loaded, LoadedParts)
            parts = {id(part): part for _, part in loaded.calls()}.values()
            found += [part for part in parts if isinstance(part, LoadedFlash | LoadedDynamic)]
    return found


def test_early_chunks_run_fewer_tiles(talks) -> None:
    """Four chunks of 32 in two layers: each layer runs no tile, one, two, and three."""
    options = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32, "NPUW_LLM_PREFILL_PYRAMID": "NO"}
    talk = talks(**hints("HFA"), **options, NPUW_LLM_ENABLE_CONTINUOUS_PREFILL="NO")
    (flash,) = attentions(talk, StageKind.PREFILL)
    assert isinstance(flash, LoadedFlash)
    ran: list[int] = []
    for length in (32, 64, 96, 128):
        talk.reset()
        before = flash.runs
        talk.tell(IDS[:length])
        ran.append(flash.runs - before)
    assert ran == [0, 2 * 1, 2 * (1 + 2), 2 * (1 + 2 + 3)]
    (of_tokens,) = attentions(talk, StageKind.GENERATE)
    assert isinstance(of_tokens, LoadedFlash)
    before = of_tokens.runs
    talk.tell([1])
    assert of_tokens.runs - before == 2 * sum(tile.own < 128 for tile in of_tokens.tiles)


def test_dynamic_attention_reads_exactly_the_stored_rows(talks) -> None:
    options = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32, "NPUW_LLM_PREFILL_PYRAMID": "NO"}
    talk = talks(**hints("DYNAMIC"), **options)
    talk.tell(IDS[:70])
    kinds = (StageKind.PREFILL, StageKind.GENERATE)

    def rows() -> list[int]:
        return [sum(each.rows for each in attentions(talk, kind)) for kind in kinds]

    before = rows()
    talk.tell(IDS[70:73])  # continues in a prefill model
    talk.tell([1])
    assert [after - first for after, first in zip(rows(), before, strict=True)] == [2 * 70, 2 * 73]


@pytest.mark.matrix
@pytest.mark.parametrize("stage", ["PREFILL", "GENERATE"])
def test_a_hint_applies_only_to_its_stage(talks, stage: str) -> None:
    hint = {f"NPUW_LLM_{stage}_ATTENTION_HINT": "HFA", "NPUW_LLM_PREFILL_CHUNK_SIZE": 32}
    both = [talks(), talks(**hint)]
    models = both[1].request._compiled.models
    for one, loaded in models.items():
        assert isinstance(loaded, LoadedParts) == (one.kind.name == stage)
    for ids in (IDS[:70], [1], [2]):
        expected, found = (talk.tell(ids) for talk in both)
        assert np.abs(found - expected).max() <= 2e-5 * np.abs(expected).max()


def test_without_chunks_the_hint_has_no_effect(talks, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        talk = talks(NPUW_LLM_PREFILL_ATTENTION_HINT="HFA")
    assert "without chunks, HFA has no effect" in caplog.text
    assert not any(isinstance(m, LoadedParts) for m in talk.request._compiled.models.values())


def test_each_kind_has_a_single_past_length() -> None:
    """PYRAMID has several lengths; HFA leaves the length to the host."""
    lengths = {"NPUW_LLM_MAX_PROMPT_LEN": 4096, "NPUW_LLM_PREFILL_CHUNK_SIZE": 512}
    pyramid, tiles = (
        plan(parse_options({**lengths, "NPUW_LLM_PREFILL_ATTENTION_HINT": hint})).prefill
        for hint in ("PYRAMID", "HFA")
    )
    assert {stage.past for stage in tiles} == {4096, 4096 - 512}
    assert len({stage.tokens for stage in tiles}) == len(tiles)
    assert {stage.tokens for stage in tiles} == {stage.tokens for stage in pyramid}
    assert len(tiles) < len(pyramid)


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["HFA", "DYNAMIC"])
def test_a_warm_start_loads_the_cached_programs(tiny: Path, tmp_path: Path, kind: str) -> None:
    cached = {**hints(kind), **SHORT, "CACHE_DIR": tmp_path}
    once, again = (Core().compile_model(tiny, "NPU", cached) for _ in range(2))
    assert not once.get_property("LOADED_FROM_CACHE")
    assert again.get_property("LOADED_FROM_CACHE")
    heard = [answer(model.create_infer_request()) for model in (once, again)]
    assert np.array_equal(*heard)


def test_an_exported_model_keeps_its_isolated_attention(tiny: Path, tmp_path: Path) -> None:
    compiled = Core().compile_model(tiny, "NPU", {**hints("HFA"), **SHORT})
    compiled.export_model(tmp_path / "model.blob")
    imported = Core().import_model(tmp_path / "model.blob", "NPU", {"WEIGHTS_PATH": str(tiny)})
    assert imported.get_property("NPUW_LLM_PREFILL_ATTENTION_HINT") == "HFA"
    heard = [answer(model.create_infer_request()) for model in (compiled, imported)]
    assert np.array_equal(*heard)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (hints("DYNAMIC"), "its programs name files of this machine"),
        (hints("HFA") | {"NPUW_ENSURE_COMPATIBILITY": "YES"}, "have no versioned layout"),
    ],
)
def test_models_that_cannot_be_exported_are_rejected_before_compilation(
    tiny: Path, tmp_path: Path, options: dict[str, str], why: str
) -> None:
    target = {"EXPORT_BLOB": "YES", "BLOB_PATH": tmp_path / "model.blob"}
    with pytest.raises(OptionError, match=why):
        Core().compile_model(tiny, "NPU", {**options, **SHORT, **target})


def test_weights_may_be_shared_with_other_processes(talks) -> None:
    both = [talks(), talks(**hints("HFA"), NPUW_WEIGHTS_BANK="attention", **CHUNKS)]
    assert both[1].request._compiled.shared is not None
    expected, found = (talk.tell(IDS[:100]) for talk in both)
    assert np.abs(found - expected).max() <= 2e-5 * np.abs(expected).max()


def test_devices_are_compared_for_each_part(talks) -> None:
    """NPUW_ACC_CHECK also runs tiles on the CPU, and finds equal results."""
    options = {"NPUW_DEVICES": "NPU,CPU", "NPUW_ACC_CHECK": "YES", "NPUW_ACC_THRESH": 1e-4}
    both = [talks(), talks(**hints("HFA"), **options, NPUW_LLM_PREFILL_CHUNK_SIZE=64)]
    for ids in (IDS[:100], [1]):
        expected, found = (talk.tell(ids) for talk in both)
        assert np.abs(found - expected).max() <= 2e-5 * np.abs(expected).max()


def test_parts_run_on_the_pinned_device_of_their_model(talks) -> None:
    options = {"NPUW_DEVICES": "NPU,CPU", "NPUW_SUBMODEL_DEVICE": "prefill:CPU"}
    talk = talks(**hints("HFA"), **options, NPUW_LLM_PREFILL_CHUNK_SIZE=64)
    talk.tell(IDS[:100])
    device = next(iter(attentions(talk, StageKind.PREFILL)))._tile
    assert isinstance(device, PlacedModel)
    assert device.placement.device == "CPU"
    device = next(iter(attentions(talk, StageKind.GENERATE)))._tile
    assert isinstance(device, PlacedModel)
    assert device.placement.device == "NPU"


def answer(request: InferRequest) -> np.ndarray:
    """Return the logits after a prompt of two chunks."""
    inputs = {
        "input_ids": np.array([IDS[:90]]),
        "attention_mask": np.ones((1, 90), np.int64),
        "position_ids": np.arange(90)[None],
    }
    return request.infer(inputs)["logits"].copy()
