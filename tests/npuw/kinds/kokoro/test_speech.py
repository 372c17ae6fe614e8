"""Speech of a split Kokoro equals that of the complete model."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw.kinds.kokoro.conftest import Kokoro

from npuw_layer.errors import InferenceCancelled, OptionError, RequestBusy, TensorError

WHOLE = {"NPUW_KOKORO_OVERLAP_SIZE": 0}
SAME = 1e-5
"""Tolerance for samples up to 0.4, in f32: the order of summation differs."""


@pytest.mark.matrix
@pytest.mark.parametrize("length", [24, 12])
def test_one_block_of_all_frames_equals_the_complete_model(kokoro: Kokoro, length: int) -> None:
    """Durations are equal, and so is noise: its seeds are in the model.

    The shorter text is half of the model's length; its golden was made without padding.
    """
    frames = int(kokoro.durations(length).sum())
    options = WHOLE | {"NPUW_DEVICES": "OPENVINO_CPU", "NPUW_KOKORO_BLOCK_SIZE": frames}
    compiled = kokoro.compile(**options)
    audio, durations = compiled.create_infer_request().infer(kokoro.text(length)).values()
    np.testing.assert_array_equal(durations[:length], kokoro.durations(length))
    assert not durations[length:].any()
    np.testing.assert_allclose(audio, kokoro.audio(length), atol=SAME)


def test_numpy_agrees_in_length_and_loudness(kokoro: Kokoro) -> None:
    """The phase of a sum of real numbers is π or -π by rounding, and the vocoder depends on it: no
    two implementations of Fourier transforms agree on samples."""
    frames = int(kokoro.durations(12).sum())
    compiled = kokoro.compile(NPUW_KOKORO_BLOCK_SIZE=frames, **WHOLE)
    audio, durations = compiled.create_infer_request().infer(kokoro.text(12)).values()
    np.testing.assert_array_equal(durations[:12], kokoro.durations(12))
    assert audio.shape == kokoro.audio(12).shape
    assert 0.8 < audio.std() / kokoro.audio(12).std() < 1.25


@pytest.mark.long
def test_padding_after_a_text_changes_nothing(kokoro: Kokoro, compiled: Any) -> None:
    text = kokoro.text(12)
    other = text | {"input_ids": text["input_ids"].copy()}
    other["input_ids"][0, 12:] = 9
    request = compiled.create_infer_request()
    said = [request.infer(each)["waveform"] for each in (text, other)]
    np.testing.assert_array_equal(*said)


def test_audio_is_as_long_as_its_frames_for_any_block_size(kokoro: Kokoro, compiled: Any) -> None:
    request = compiled.create_infer_request()
    for length in (24, 12, 24):
        found = request.infer(kokoro.text(length))
        assert found["waveform"].shape == kokoro.audio(length).shape
        assert 0.7 < found["waveform"].std() / kokoro.audio(length).std() < 1.4
    assert request.execution_report()["text"] == "79 frames in 4 blocks of 30"


def test_ports_are_those_of_the_whole_model(compiled: Any) -> None:
    assert [(p.any_name, p.element_type, p.shape) for p in compiled.inputs] == [
        ("input_ids", "i64", (1, 24)),
        ("ref_s", "f32", (1, 256)),
        ("speed", "f32", (1,)),
    ]
    assert [(p.any_name, p.element_type, p.partial_shape) for p in compiled.outputs] == [
        ("waveform", "f32", (-1,)),
        ("phonemes", "i64", (24,)),
    ]
    assert compiled.input("speed").index == 2
    assert compiled.output(1).any_name == "phonemes"


def test_a_higher_speed_shortens_the_audio(kokoro: Kokoro, compiled: Any) -> None:
    request = compiled.create_infer_request()
    text = kokoro.text(24)
    slow, fast = (
        request.infer(text | {"speed": np.array([speed], np.float32)})["phonemes"].sum()
        for speed in (0.5, 2)
    )
    assert slow > kokoro.durations(24).sum() > fast


def test_tensors_are_set_one_by_one(kokoro: Kokoro, compiled: Any) -> None:
    request = compiled.create_infer_request()
    text = kokoro.text(12)
    request.set_tensor("input_ids", text["input_ids"])
    with pytest.raises(TensorError, match="not set: ref_s, speed"):
        request.infer()
    request.set_tensor(1, text["ref_s"])
    request.set_tensor(compiled.input("speed"), text["speed"])
    found = request.infer()
    np.testing.assert_array_equal(request.get_output_tensor(0).data, found["waveform"])
    np.testing.assert_array_equal(request.get_tensor("phonemes").data, found["phonemes"])
    np.testing.assert_array_equal(request.get_tensor("speed").data, text["speed"])
    with pytest.raises(TensorError, match=r"input_ids.*i64 \[1, 24\], not i64 \[1, 12\]"):
        request.set_tensor("input_ids", text["input_ids"][:, :12])
    with pytest.raises(TensorError, match="no input 'text_mask'"):
        request.infer({"text_mask": np.zeros((1, 24), bool)})
    assert request.query_state() == []
    request.reset_state()


def test_inference_runs_asynchronously_and_is_cancelled(kokoro: Kokoro, compiled: Any) -> None:
    request = compiled.create_infer_request()
    called = threading.Event()
    request.set_callback(lambda _: called.set())
    request.start_async(kokoro.text(12))
    request.wait()
    assert called.is_set()
    assert request.get_output_tensor(0).data.shape == kokoro.audio(12).shape
    held, go = threading.Event(), threading.Event()
    request.set_callback(lambda _: (held.set(), go.wait(60)))
    request.start_async(kokoro.text(24))
    request.cancel()
    assert held.wait(60)
    go.set()
    with pytest.raises(InferenceCancelled):
        request.wait()
    request.start_async(kokoro.text(12))
    with pytest.raises(RequestBusy):
        request.set_tensor("speed", np.ones(1, np.float32))
    request.wait()


def test_a_submodel_that_the_npu_does_not_compile_moves_to_the_next_device_with_the_reason(
    kokoro: Kokoro, caplog: pytest.LogCaptureFixture
) -> None:
    compiled = kokoro.compile(NPUW_DEVICES="NPU,OPENVINO_CPU")
    assert compiled.get_property("EXECUTION_DEVICES") == ["NPU", "OPENVINO_CPU"]
    (line,) = (line for line in caplog.messages if "NPU cannot compile it" in line)
    assert line.startswith("durations: ")
    assert "LSTMSequence-5" in line


def test_without_a_second_device_the_error_names_unsupported_ops(kokoro: Kokoro) -> None:
    with pytest.raises(RuntimeError, match=r"operations not supported.*LSTMSequence-5"):
        kokoro.compile(NPUW_DEVICES="NPU")


def test_submodels_are_pinned_by_name_or_number(kokoro: Kokoro) -> None:
    devices = {"NPUW_DEVICES": "CPU,OPENVINO_CPU"}
    for pins in ("1:OPENVINO_CPU", "durations:CPU,audio:OPENVINO_CPU"):
        compiled = kokoro.compile(**devices, NPUW_SUBMODEL_DEVICE=pins)
        assert compiled.get_property("EXECUTION_DEVICES") == ["CPU", "OPENVINO_CPU"]
    with pytest.raises(OptionError, match="choose from 0 durations, 1 audio"):
        kokoro.compile(**devices, NPUW_SUBMODEL_DEVICE="prefill:CPU")


@pytest.mark.long
def test_a_second_start_compiles_only_changed_block_sizes(kokoro: Kokoro, tmp_path: Path) -> None:
    def start(**config: object) -> str:
        compiled = kokoro.compile(CACHE_DIR=str(tmp_path), **config)
        return str(compiled.create_infer_request().execution_report()["blobs"]).partition(" in")[0]

    assert start() == "2 compiled"
    assert start(NPUW_KOKORO_OVERLAP_SIZE=4) == "2 loaded from cache"
    assert start(NPUW_KOKORO_BLOCK_SIZE=30) == "1 compiled, 1 loaded from cache"


def test_export_is_rejected(compiled: Any, kokoro: Kokoro, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="NPUW_KOKORO = YES: export is not supported"):
        compiled.export_model()
    with pytest.raises(OptionError, match="EXPORT_BLOB: contradicts NPUW_KOKORO"):
        kokoro.compile(EXPORT_BLOB="YES", BLOB_PATH=str(tmp_path / "model.blob"))


@pytest.mark.long
@pytest.mark.parametrize(("device", "nearly"), [("CPU", 1e-4), ("OPENVINO_CPU", 5e-2)])
def test_the_npu_runs_the_audio_model_except_avoided_ops(
    kokoro: Kokoro, device: str, nearly: float
) -> None:
    """The voice is a tensor in NPU memory; phases are equal to those of the second device alone.

    OpenVINO fuses ops of the complete model that the parts separate: few phases differ, but many
    from those of numpy.
    """
    frames = {"NPUW_KOKORO_BLOCK_SIZE": int(kokoro.durations(12).sum()), **WHOLE}
    compiled = kokoro.compile(NPUW_DEVICES=f"NPU,{device}", **frames)
    assert compiled.get_property("EXECUTION_DEVICES") == ["NPU", device]
    assert "Op:RandomUniform/NPU" in compiled.get_property("NPUW_ONLINE_AVOID")
    text = kokoro.text(12)
    voice = compiled.get_context().create_host_tensor("f32", (1, 256))
    voice.data[...] = text["ref_s"]
    request = compiled.create_infer_request()
    found = request.infer(text | {"ref_s": voice})
    where = request.execution_report()["device of audio"]
    assert re.fullmatch(rf"part ×\d+: NPU \| not NPU ×\d+: {device}", where)
    expected = kokoro.compile(NPUW_DEVICES=device, **frames).create_infer_request().infer(text)
    np.testing.assert_array_equal(found["phonemes"], expected["phonemes"])
    np.testing.assert_allclose(found["waveform"], expected["waveform"], atol=nearly)


def test_explicit_avoided_ops_replace_the_default(kokoro: Kokoro) -> None:
    every = "Op:Convolution/NPU,Op:RandomUniform/NPU"
    asked = {"NPUW_ONLINE_AVOID": every, "NPUW_SUBMODEL_DEVICE": "0:CPU,1:CPU"}
    compiled = kokoro.compile(NPUW_DEVICES="NPU,CPU", **asked)
    assert compiled.get_property("NPUW_ONLINE_AVOID") == every


def test_the_default_precision_is_f32(kokoro: Kokoro, compiled: Any) -> None:
    assert compiled.get_property("INFERENCE_PRECISION_HINT") == "f32"
    narrow = kokoro.compile(INFERENCE_PRECISION_HINT="f16")
    assert narrow.get_property("INFERENCE_PRECISION_HINT") == "f16"
