"""Options of a decoder, rejection of other models, and programs in files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.errors import BlobError, ModelError, OptionError
from npuw_layer.traits.cross_attention import TRAIT

CONFIG: dict[str, Any] = {
    "NPUW_WHISPER": "YES",
    "NPUW_WHISPER_EOS_TOKEN": 256,
    "NPUW_WHISPER_ENCODER_LEN": 40,
    "INFERENCE_PRECISION_HINT": "f32",
}
IDS = (257, 3, 4)


def logits(compiled, audio) -> np.ndarray:
    """Return the logits of a prompt and two tokens."""
    request = compiled.create_infer_request()
    found = [request.infer({"input_ids": np.array([IDS]), "encoder_hidden_states": audio})]
    found += [request.infer({"input_ids": np.array([[token]])}) for token in (7, 8)]
    return np.concatenate([each["logits"][0] for each in found])


def test_options_that_npuw_fixes_are_fixed(compiled) -> None:
    for name in ("SHARED_HEAD", "CACHE_ROPE", "OPTIMIZE_V_TENSORS"):
        assert compiled.get_property(f"NPUW_LLM_{name}") is False
    assert compiled.get_property("NPUW_WHISPER") is True
    assert compiled.get_property("NPUW_FOLD") is False


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"NPUW_LLM": "NO"}, "NPUW_WHISPER = YES needs NPUW_LLM = YES"),
        ({"NPUW_LLM_BATCH_SLOTS": "1,2"}, "NPUW_LLM_BATCH_SLOTS: contradicts NPUW_WHISPER = YES"),
        ({"NPUW_LLM_ON_FULL": "SLIDE"}, "NPUW_LLM_ON_FULL: contradicts NPUW_WHISPER = YES"),
        ({"NPUW_LLM_MAX_PROMPT_LEN": 448}, "448 positions; set the length to at most 447"),
        ({"NPUW_WHISPER_EOS_TOKEN": 300}, "NPUW_WHISPER_EOS_TOKEN = 300: the model has 300 tok"),
    ],
)
def test_unsupported_options_are_rejected(decoder, options, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Core().compile_model(decoder, "NPU", CONFIG | options)


def test_other_models_are_rejected(whisper, decoder, tiny) -> None:
    for other in (whisper("fp16").encoder, tiny):
        with pytest.raises(ModelError, match=r"not a stateful Whisper decoder: inputs .* expected"):
            Core().compile_model(other, "NPU", CONFIG)
    with pytest.raises(ModelError, match="not a stateful language model"):
        Core().compile_model(decoder, "NPU", {"INFERENCE_PRECISION_HINT": "f32"})


def test_batching_is_rejected(compiled) -> None:
    with pytest.raises(OptionError, match="batching is not supported"):
        compiled.create_batching()


@pytest.mark.matrix
@pytest.mark.parametrize("device", ["CPU", "OPENVINO_CPU", "CPU,NPU"])
def test_other_devices_give_the_same_logits(decoder, compiled, hear, device: str) -> None:
    other = Core().compile_model(decoder, "NPU", CONFIG | {"NPUW_DEVICES": device})
    np.testing.assert_allclose(logits(other, hear(1)), logits(compiled, hear(1)), atol=1e-4)


def test_only_caches_of_text_are_stored_in_8_bits(decoder, compiled, hear) -> None:
    small = Core().compile_model(decoder, "NPU", CONFIG | {"KV_CACHE_PRECISION": "i8"})
    assert np.abs(logits(small, hear(1)) - logits(compiled, hear(1))).mean() < 0.1
    states = {
        each.name: each.state.data.dtype for each in small.create_infer_request().query_state()
    }
    assert states["past_key_values.0.encoder.key"] == np.float32
    assert np.int8 in states.values()


def test_a_second_start_loads_from_the_cache(decoder, hear, tmp_path) -> None:
    starts = [
        Core().compile_model(decoder, "NPU", CONFIG | {"CACHE_DIR": str(tmp_path)})
        for _ in range(2)
    ]
    assert [each.get_property("LOADED_FROM_CACHE") for each in starts] == [False, True]
    np.testing.assert_array_equal(*(logits(each, hear(1)) for each in starts))


@pytest.mark.matrix
@pytest.mark.parametrize("mode", ["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"])
def test_an_imported_model_gives_the_same_bits(decoder, hear, mode: str) -> None:
    exporter = Core().compile_model(decoder, "NPU", CONFIG | {"CACHE_MODE": mode})
    weights = str(decoder.with_suffix(".bin"))
    imported = Core().import_model(exporter.export_model(), "NPU", {"WEIGHTS_PATH": weights})
    assert imported.get_property("NPUW_WHISPER_EOS_TOKEN") == 256
    np.testing.assert_array_equal(logits(imported, hear(1)), logits(exporter, hear(1)))


def test_programs_for_different_audio_are_rejected(decoder, compiled) -> None:
    shorter = Core().compile_model(decoder, "NPU", CONFIG | {"NPUW_WHISPER_ENCODER_LEN": 20})
    stages = compiled._compiled.plan.stages
    own = [compiled._compiled.models[stage] for stage in stages]
    options = compiled._compiled.options
    TRAIT.check_ports(stages, own, options)
    others = [shorter._compiled.models[stage] for stage in stages]
    with pytest.raises(BlobError, match="generate_256 has other K and V of the audio"):
        TRAIT.check_ports(stages, [own[0], *others[1:]], options)
    with pytest.raises(BlobError, match=r"prefill_4 has no encoder_hidden_states f32 \[1, 40"):
        TRAIT.check_ports(stages, others, options)
