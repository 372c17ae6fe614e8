"""Options that a model rules out are rejected for cached and imported programs, too.

Options that change no program find programs that were made without these options.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.conftest import GOLDENS

from npuw_layer import Core
from npuw_layer.errors import ModelError

SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_GENERATE_PYRAMID": "NO",
    "INFERENCE_PRECISION_HINT": "f32",
}
STEPS = {"NPUW_LLM_MAX_GENERATION_TOKEN_LEN": 8}


def refused(model: Path, before: Mapping[str, object], wanted: Mapping[str, object]) -> str:
    """Return the error of a model, equal for compiled and cached programs."""
    said: list[str] = []
    for options in (wanted, before, wanted):
        try:
            Core().compile_model(model, "NPU", {**SMALL, **options})
        except ModelError as error:
            assert options is wanted
            said.append(str(error))
        else:
            assert options is before
    assert len(set(said)) == 1
    return said[0]


@pytest.mark.matrix
@pytest.mark.parametrize("devices", ["NPU", "NPU,CPU"])
def test_linear_states_rule_out_a_prefix_cache(restored, tmp_path, devices) -> None:
    """Rows came from the prefix cache without their states, and logits were off by half."""
    both = {"CACHE_DIR": str(tmp_path), "NPUW_DEVICES": devices}
    model = restored(GOLDENS / "linear", "lfm2_fp16")
    goes_on = both | {"NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES"}
    cached = both | {"NPUW_LLM_ENABLE_PREFIX_CACHING": "YES"}
    assert "NPUW_LLM_ENABLE_PREFIX_CACHING: the model has" in refused(model, goes_on, cached)


@pytest.mark.matrix
@pytest.mark.parametrize("devices", ["NPU", "NPU,CPU"])
def test_trees_rule_out_a_sliding_cache(restored, tmp_path, devices) -> None:
    both = {"CACHE_DIR": str(tmp_path), "NPUW_DEVICES": devices, "NPUW_LLM_CACHE_ROPE": "NO"}
    model = restored(GOLDENS / "exported" / "eagle", "tree_target")
    slides = both | STEPS | {"NPUW_LLM_ON_FULL": "SLIDE"}
    assert "NPUW_LLM_ON_FULL = SLIDE: candidates" in refused(model, both | STEPS, slides)


def test_an_adapted_head_rules_out_several_conversations(adapt, tmp_path) -> None:
    both = {"CACHE_DIR": str(tmp_path)}
    model = adapt("llama_fp16", r"mlp|lm_head").path
    together = both | {"NPUW_LLM_BATCH_SLOTS": 8}
    assert "the LM head would need the adapter" in refused(model, both | STEPS, together)


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("folder", "name", "wanted", "why"),
    [
        ("exported", "bloom_fp16", "SLIDE", "counts tokens itself"),
        ("exported", "gemma2_fp16", "SLIDE", "counts tokens itself"),
        ("exported/vlm", "qwen2_vl", "TRUNCATE", "several axes"),
        ("exported/eagle", "draft", "TRUNCATE", "for each token"),
    ],
)
def test_ruled_out_options_are_rejected_at_compilation(restored, folder, name, wanted, why) -> None:
    model = restored(GOLDENS / folder, name)
    with pytest.raises(ModelError, match=f"NPUW_LLM_ON_FULL = {wanted}: .*|.*{why}"):
        Core().compile_model(model, "NPU", SMALL | {"NPUW_LLM_ON_FULL": wanted})
