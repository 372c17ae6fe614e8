"""Each model equals the real OpenVINO in all configurations, also after a rewind."""

from __future__ import annotations

import pytest

from .conftest import close

CHUNKED = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32, "NPUW_LLM_PREFILL_PYRAMID": "NO"}
TILES = {
    "NPUW_LLM_PREFILL_ATTENTION_HINT": "HFA",
    "NPUW_LLM_GENERATE_ATTENTION_HINT": "HFA",
    **CHUNKED,
}
WAYS = {
    "whole": {"NPUW_LLM_PREFILL_HINT": "STATIC"},
    "static": {"NPUW_LLM_PREFILL_ATTENTION_HINT": "STATIC", **CHUNKED},
    "pyramid": CHUNKED | {"NPUW_LLM_PREFILL_PYRAMID": "YES"},
    "tiles": TILES,
    "blocks": {"NPUW_LLM_ENABLE_BLOCK_BASED_KV_CACHE": "YES", **CHUNKED},
    "transposed": {"NPUW_LLM_OPTIMIZE_V_TENSORS": "YES", **CHUNKED},
    "own heads": {"NPUW_LLM_SHARED_HEAD": "NO", **CHUNKED},
    "variants": {"NPUW_LLM_GENERATE_PYRAMID_STEPS": "104,192", **CHUNKED},
    "copied": {"NPUW_LLM_KV_SWITCHOVER": "COPY", **CHUNKED},
    "interpreted": {"NPUW_DEVICES": "CPU", **CHUNKED},
}
MODELS = {
    "llava": [*WAYS],
    "qwen2_vl": ["whole", "tiles", "interpreted"],
    "qwen2_5_vl": ["pyramid"],
    "gemma3": ["pyramid"],
    "gemma3_types": ["whole"],
    "qwen3_vl": ["pyramid", "tiles", "blocks"],
    "qwen3_vl_gathered": ["whole"],
    "gemma3n": ["pyramid"],
}


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("name", "way"), [(name, way) for name, ways in MODELS.items() for way in ways]
)
def test_each_configuration_equals_openvino(models, name: str, way: str) -> None:
    model = models(name)
    talk = model.begin(**WAYS[way])
    for count in (1, 7, 100):
        talk.request.reset_state()
        assert close(talk.tell(0, count), model.goldens[f"logits_{count}"]), count
    for number, expected in enumerate(model.goldens["steps"]):
        assert close(talk.tell(100 + number), expected), number
    for number in range(90, 100):  # rewinds over prompt and generated tokens
        logits = talk.tell(number)
    assert close(logits, model.goldens["logits_100"])


def test_weights_in_f16_and_caches_in_i8_give_close_logits(qwen) -> None:
    expected = qwen.goldens["logits_100"].astype("f8")
    for options in ({"INFERENCE_PRECISION_HINT": "f16"}, {"KV_CACHE_PRECISION": "i8"}):
        found = qwen.begin(**options).tell(0, 100).astype("f8")
        cosine = found @ expected / ((found @ found) * (expected @ expected)) ** 0.5
        assert cosine >= 0.999


def test_several_tokens_are_one_step(llava) -> None:
    """A generate step returns the logits of each of its tokens."""
    talk = llava.begin(NPUW_LLM_MAX_GENERATION_TOKEN_LEN=8)
    talk.tell(0, 100)
    logits = talk.request.infer(talk.drawn.inputs(100, 106))["logits"][0]
    assert close(logits, llava.goldens["steps"])


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["llava", "qwen2_vl"])
@pytest.mark.parametrize("keep", [34, 70])
def test_a_prompt_continues_after_kept_tokens(models, name: str, keep: int) -> None:
    """Positions after an image are less than the count of tokens; the mask has the count."""
    model = models(name)
    talk = model.begin(NPUW_LLM_ENABLE_CONTINUOUS_PREFILL="YES")
    talk.tell(0, 90)
    assert close(talk.tell(keep, 100), model.goldens["logits_100"])
    assert close(talk.tell(100), model.goldens["steps"][0])


@pytest.mark.parametrize("name", ["llava", "qwen2_vl"])
def test_an_imported_model_gives_the_same_logits(models, name: str, core, tmp_path) -> None:
    model = models(name)
    model.compiled(**CHUNKED).export_model(tmp_path / "model.blob")
    imported = core.import_model(
        tmp_path / "model.blob", "NPU", {"WEIGHTS_PATH": model.path.with_suffix(".bin")}
    )
    talk = model.of(imported)
    assert close(talk.tell(0, 100), model.goldens["logits_100"])
    assert close(talk.tell(100), model.goldens["steps"][0])
