"""Split of a Kokoro, and rejection of other models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.npuw.kinds.kokoro.conftest import Kokoro

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Add
from compiler_layer.dialects.ov.recurrent import LSTMSequence
from compiler_layer.dialects.ov.types import element_of, shape_of, tensor
from compiler_layer.model import Model
from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import Core
from npuw_layer.errors import ModelError, OptionError
from npuw_layer.kinds.kokoro.split import audio_model, durations_model
from npuw_layer.storage.read_model import read_model


@pytest.fixture(scope="module")
def whole(kokoro: Kokoro) -> Model:
    return read_model(kokoro.path)


def ports(model: Model, side: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {
        port.name: (element_of(port.value), shape_of(port.value)) for port in getattr(model, side)
    }


def test_the_first_model_reads_a_text_and_inputs_for_its_padding(whole: Model) -> None:
    model = durations_model(whole)
    assert ports(model, "inputs") == {
        "input_ids": ("i64", (1, 24)),
        "ref_s": ("f32", (1, 256)),
        "speed": ("f32", (1,)),
        "text_mask": ("boolean", (1, 24)),
        "input_lengths": ("i64", (1,)),
    }
    # The encoding of prosody also includes the style of 128 numbers.
    assert ports(model, "outputs") == {
        "phonemes": ("i64", (24,)),
        "en_left": ("f32", (1, 16 + 128, 24)),
        "asr_left": ("f32", (1, 16, 24)),
    }
    networks = [op for op in model.body.ops if isinstance(op, LSTMSequence)]
    lengths = {port.name: port.value for port in model.inputs}["input_lengths"]
    assert len(networks) == 3
    assert all(op.lengths is lengths for op in networks)


def test_the_second_model_makes_audio_of_one_block_of_frames(whole: Model) -> None:
    model = audio_model(whole, 40)
    assert ports(model, "inputs") == {
        "ref_s": ("f32", (1, 256)),
        "en_block": ("f32", (1, 16 + 128, 40)),
        "asr_block": ("f32", (1, 16, 40)),
    }
    assert [*ports(model, "outputs")] == ["waveform"]


def test_the_complete_model_is_not_changed(whole: Model) -> None:
    before = whole.text()
    durations_model(whole)
    audio_model(whole, 40)
    assert whole.text() == before


def test_a_missing_padding_mask_is_logged(whole: Model, caplog: pytest.LogCaptureFixture) -> None:
    """Folded shapes make the padding mask indistinguishable from other masks."""
    from compiler_layer.rewriting.shapes import specialize_shapes

    folded = whole.clone()
    specialize_shapes(folded)
    assert "text_mask" not in ports(durations_model(folded), "inputs")
    assert "no padding mask found" in caplog.text


def test_open_shapes_are_rejected(whole: Model) -> None:
    opened = whole.clone()
    opened.set_input_shapes({"input_ids": (1, -1), "ref_s": (1, -1)})
    for split in (durations_model, lambda model: audio_model(model, 40)):
        with pytest.raises(ModelError, match="'input_ids', 'ref_s' are open; reshape the model"):
            split(opened)


def write(folder: Path, build: Callable[[GraphBuilder, Any], dict[str, Any]], ids: str) -> Path:
    """Write a small model of tokens."""
    model, (tokens,) = Model.build([(ids, tensor("i64", (1, 4)))])
    model.set_outputs([*build(GraphBuilder(model), tokens).items()])
    write_ir(model, folder / "model.xml")
    return folder / "model.xml"


@pytest.mark.parametrize(
    ("build", "ids", "lacking"),
    [
        (lambda g, x: {"y": g.op(Add, x, x)}, "input_ids", "no floating-point output"),
        (lambda g, x: {"y": g.convert(x, "f32")}, "input_ids", "no integer output with the"),
        (
            lambda g, x: {"y": g.convert(x, "f32"), "z": g.op(Add, x, x)},
            "input_ids",
            "no two matmuls of encodings",
        ),
        (lambda g, x: {"y": g.op(Add, x, x)}, "tokens", "no input input_ids"),
    ],
)
def test_other_models_are_rejected_with_the_missing_feature(
    tmp_path: Path, build: Any, ids: str, lacking: str
) -> None:
    path = write(tmp_path, build, ids)
    with pytest.raises(ModelError, match=f"NPUW_KOKORO = YES.*{lacking}"):
        Core().compile_model(path, "NPU", {"NPUW_KOKORO": "YES", "NPUW_DEVICES": "CPU"})


def test_a_hugging_face_folder_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="is not an IR; export the model first"):
        Core().compile_model(tmp_path, "NPU", {"NPUW_KOKORO": "YES"})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"NPUW_KOKORO_BLOCK_SIZE": 20}, "NPUW_KOKORO_OVERLAP_SIZE = 20: set it to less than"),
        ({"NPUW_KOKORO_OVERLAP_SIZE": 200}, "NPUW_KOKORO_OVERLAP_SIZE = 200: set it to less than"),
        ({"NPUW_KOKORO_BLOCK_SIZE": 0}, "NPUW_KOKORO_BLOCK_SIZE = 0: must be an integer from 1"),
        ({"NPUW_KOKORO_OVERLAP": 20}, "use NPUW_KOKORO_OVERLAP_SIZE"),
        ({"NPU_USE_NPUW": "NO"}, "NPUW_KOKORO = YES needs NPU_USE_NPUW = YES, without NPUW_LLM"),
        ({"NPUW_LLM": "YES"}, "NPUW_KOKORO = YES needs NPU_USE_NPUW = YES, without NPUW_LLM"),
        ({"NPUW_WHISPER": "YES"}, "NPUW_WHISPER: contradicts NPUW_KOKORO = YES"),
        ({"NPUW_WEIGHTS_BANK": "shared"}, "NPUW_WEIGHTS_BANK: contradicts NPUW_KOKORO = YES"),
        ({"NPUW_WEIGHTS_OFFLOAD": "SYNC"}, "NPUW_WEIGHTS_OFFLOAD applies only to language models"),
    ],
)
def test_options_that_contradict_each_other_are_rejected(
    kokoro: Kokoro, config: dict[str, object], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        kokoro.compile(**config)


def test_common_inputs_are_equal_in_both_models(whole: Model) -> None:
    """The voice is an input of both models."""
    for model in (durations_model(whole), audio_model(whole, 9)):
        assert ports(model, "inputs")["ref_s"] == ("f32", (1, 256))
