"""Transposed V (NPUW_LLM_OPTIMIZE_V_TENSORS): other results are unchanged."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.backends.protocols import ASSIGN_PREFIX, READ_PREFIX
from npuw_layer.errors import BlobError, OptionError
from npuw_layer.llm.imported_ports import check_ports
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import parse_options

TRANSPOSED = {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES"}
IDS = np.random.default_rng(5).integers(0, 97, 400).tolist()

COARSE = {"f16": 5e-3, "f32 cache": 5e-3, "f16 cache": 2e-4, "i8 cache": 5e-3, "f8 cache": 3e-2}
"""Tolerances: sums are in another order, so a value may be rounded in the other direction."""

FEATURES: dict[str, dict[str, Any]] = {
    "plain": {},  # of a model whose layers are folded
    "f16": {"INFERENCE_PRECISION_HINT": "f16"},
    "i8 cache": {"KV_CACHE_PRECISION": "i8"},
    "f8 cache": {"KV_CACHE_PRECISION": "f8e4m3"},
    "f16 cache": {"KV_CACHE_PRECISION": "f16"},
    "f32 cache": {"KV_CACHE_PRECISION": "f32", "INFERENCE_PRECISION_HINT": "f16"},
    "variants, several tokens": {
        "NPUW_LLM_GENERATE_PYRAMID_STEPS": "72,128,192",
        "NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8,
        "NPUW_LLM_SHARED_HEAD": "NO",
    },
    "chunks, prefixes": {
        "NPUW_LLM_ENABLE_PREFIX_CACHING": "YES",
        "NPUW_LLM_PREFILL_CHUNK_SIZE": 32,
    },
    "interpreter": {"NPUW_DEVICES": "CPU"},
    "truncated": {"NPUW_LLM_ON_FULL": "TRUNCATE"},
    "sliding": {"NPUW_LLM_ON_FULL": "SLIDE", "NPUW_LLM_SINK_TOKENS": 4},
    "offloaded": {"NPUW_WEIGHTS_OFFLOAD": "ASYNC"},
    "checked": {"NPUW_DEVICES": "NPU,CPU", "NPUW_ACC_CHECK": "YES"},
}


@pytest.mark.matrix
@pytest.mark.parametrize("feature", FEATURES)
def test_a_conversation_equals_one_with_untransposed_v(
    talks, tiny: Path, tall: Path, feature: str
) -> None:
    """A prompt, steps until the cache is full if allowed, a rewind, another prompt."""
    options, model = FEATURES[feature], tall if feature in ("plain", "offloaded") else tiny
    both = [talks(model, **options, **extra) for extra in (TRANSPOSED, {})]

    def tell(ids: list[int], back: int = 0) -> None:
        found, expected = (talk.tell(ids, back) for talk in both)
        assert np.abs(found - expected).max() <= COARSE.get(feature, 1e-5) * np.abs(expected).max()

    tell(IDS[:70])
    for token in IDS[70 : 200 if "NPUW_LLM_ON_FULL" in options else 75]:
        tell([token])
    tell([3], back=5)
    for talk in both:
        talk.reset()
    tell(IDS[:45])
    tell([3])


def test_v_is_stored_channel_by_channel(talks, tiny: Path) -> None:
    models = talks(**TRANSPOSED).request._compiled.models
    generate = models[Stage(StageKind.GENERATE, 1, 191)]
    name = "past_key_values.0.{0}present.0.{0}"
    value = name.format("value") + "@transposed"
    shapes = {info.name: info.shape for info in (*generate.inputs, *generate.outputs)}
    assert shapes[READ_PREFIX + name.format("key")] == (1, 191, 2, 8)
    assert shapes[READ_PREFIX + value] == (1, 2, 8, 192), "of which 191 positions are read"
    assert shapes[ASSIGN_PREFIX + value] == (1, 2, 8, 1)


def test_a_saved_conversation_continues_with_either_layout_of_v(talks, tmp_path: Path) -> None:
    plain, other = talks(), talks(**TRANSPOSED)
    for source, target in ((plain, other), (other, plain)):
        source.reset()
        source.tell(IDS[:40])
        source.request.save_state(tmp_path / "talk")
        target.request.load_state(tmp_path / "talk")
        target.said = 40
        found, expected = target.tell([7]), source.tell([7])
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
        ours, theirs = (
            {state.name: state.state.data for state in talk.request.query_state()}
            for talk in (source, target)
        )
        assert ours.keys() == theirs.keys()
        assert all(np.allclose(ours[name], theirs[name], atol=1e-5) for name in ours)


def test_an_exported_model_keeps_transposed_v(tall: Path, tmp_path: Path) -> None:
    compiled = Core().compile_model(tall, "NPU", {"NPUW_LLM_MAX_PROMPT_LEN": 64, **TRANSPOSED})
    compiled.export_model(tmp_path / "tall.blob")
    imported = Core().import_model(tmp_path / "tall.blob", "NPU", {"WEIGHTS_PATH": str(tall)})
    assert imported.get_property("NPUW_LLM_OPTIMIZE_V_TENSORS") is True
    heard = [_answer(model.create_infer_request()) for model in (compiled, imported)]
    assert np.array_equal(*heard)


def _answer(request: Any) -> np.ndarray:
    inputs = {
        "input_ids": np.array([IDS[:9]]),
        "attention_mask": np.ones((1, 9), np.int64),
        "position_ids": np.arange(9)[None],
    }
    return request.infer(inputs)["logits"].copy()


def test_a_warm_start_finds_all_programs(
    tiny: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = {**TRANSPOSED, "NPUW_LLM_GENERATE_PYRAMID_STEPS": "256,1152", "CACHE_DIR": tmp_path}
    for warm in (False, True):
        with caplog.at_level(logging.WARNING):
            compiled = Core().compile_model(tiny, "NPU", config)
        assert compiled.get_property("LOADED_FROM_CACHE") is warm
    assert not caplog.text


def test_a_program_for_another_buffer_length_is_rejected(talks) -> None:
    stage = Stage(StageKind.GENERATE, 1, 191)
    compiled = talks(**TRANSPOSED, NPUW_LLM_SHARED_HEAD="NO").request._compiled
    model, options = compiled.models[stage], compiled.options
    check_ports([stage], [model], options)
    with pytest.raises(BlobError, match="generate_192 has caches of another length"):
        check_ports([stage], [model], options.model_copy(update={"min_response_len": 128}))


def test_transposed_rows_cannot_be_written_in_place() -> None:
    with pytest.raises(OptionError, match="ZERO_COPY needs token-major rows"):
        parse_options({**TRANSPOSED, "NPUW_LLM_KV_SWITCHOVER": "ZERO_COPY"})
    assert not parse_options(TRANSPOSED).writes_in_place
    assert parse_options({}).writes_in_place
