"""Encoder and decoder as the real exporter writes them, compared with the real OpenVINO."""

from __future__ import annotations

import numpy as np
import pytest

from npuw_layer import Core

GREEDY = 32


@pytest.fixture(params=["fp16", "int8"])
def model(whisper, request):
    return whisper(request.param)


@pytest.fixture
def audio(model):
    """Return our encoder's output for the spectrogram, f32."""
    static = {"NPU_USE_NPUW": "NO", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = Core().compile_model(model.encoder, "NPU", static)
    (states,) = compiled.create_infer_request().infer({"input_features": model.features}).values()
    return states


def begun(model, audio, **options):
    """Return the text of a decoder with NPUW's options, and the logits of its prompt of three."""
    config = {"NPUW_WHISPER": "YES", "NPUW_WHISPER_EOS_TOKEN": 256, **options}
    request = Core().compile_model(model.decoder, "NPU", config).create_infer_request()

    def infer(*tokens: int) -> np.ndarray:
        inputs = {"input_ids": np.array([tokens]), "encoder_hidden_states": audio}
        return request.infer(inputs)["logits"][0]

    return infer, infer(*model.said["text"][:3])


@pytest.mark.matrix
def test_an_encoder_of_open_batch_is_static_with_batch_1(model, audio) -> None:
    assert audio.shape == (1, 1500, 32)
    np.testing.assert_allclose(audio[:, ::100], model.said["heard"], atol=1e-4)


@pytest.mark.matrix
def test_logits_and_greedy_tokens_equal_openvinos_in_f32(model, audio) -> None:
    infer, prompt = begun(model, audio, INFERENCE_PRECISION_HINT="f32")
    given = [prompt, *(infer(token) for token in model.said["text"][3:])]
    np.testing.assert_allclose(np.concatenate(given), model.said["logits"], atol=2e-4)
    greedy = [int(infer(*model.said["text"][:3])[-1].argmax())]
    while len(greedy) < GREEDY:
        greedy.append(int(infer(greedy[-1])[-1].argmax()))
    assert greedy == model.said["greedy"].tolist()


@pytest.mark.matrix
def test_logits_are_close_in_f16_as_on_the_device(model, audio) -> None:
    infer, prompt = begun(model, audio)
    given = np.concatenate([prompt, *(infer(token) for token in model.said["text"][3:])])
    assert np.abs(given - model.said["logits"]).max() < 0.15
    assert np.abs(given - model.said["logits"]).mean() < 0.02
