"""Speech recognition on the complete stack, compared to the real openvino_genai.

The model is tiny and random, its texts are letters; tools/make_whisper_goldens.py wrote them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genai_layer import (
    ConfigError,
    PromptError,
    PropertyError,
    RuntimeFailure,
    StreamingStatus,
    WhisperPipeline,
)
from genai_layer.errors import ModelError
from genai_layer.whisper.features import FeatureExtractor

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
SAID: dict[str, Any] = json.loads((GOLDENS / "whisper" / "transcriptions.json").read_text())
EXACT = {
    "CPU": {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"},
    "NPU": {"INFERENCE_PRECISION_HINT": "f32", "MAX_PROMPT_LEN": 20},
}


@pytest.fixture(scope="module")
def tools(load_module: Callable[[Path], Any]) -> Any:
    return load_module(GOLDENS / "whisper" / "folder.py")


@pytest.fixture(scope="module")
def folder(
    tools: Any, load_module: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    restore = load_module(GOLDENS / "exported" / "restore.py").restore
    parts = [
        restore(GOLDENS / "whisper", f"{part}_fp16", tmp_path_factory.mktemp(part))
        for part in ("encoder", "decoder")
    ]
    return tools.write(*parts, tmp_path_factory.mktemp("whisper"))


@pytest.fixture(scope="module", params=["NPU", "CPU"])
def pipeline(folder: Path, request: pytest.FixtureRequest) -> WhisperPipeline:
    """Pipeline on this stack's NPU, and on the real OpenVINO."""
    return WhisperPipeline(folder, request.param, **EXACT[request.param])


@pytest.fixture(scope="module")
def npu(folder: Path) -> WhisperPipeline:
    return WhisperPipeline(folder, "NPU")


def test_a_spectrogram_equals_that_of_transformers(tools: Any) -> None:
    expected = np.load(GOLDENS / "whisper" / "spectrogram.npz")["spectrogram"]
    found = FeatureExtractor(feature_size=16).extract(tools.speech(4.0))
    assert found.shape == (16, 3000)
    np.testing.assert_allclose(found[:, ::10], expected, atol=2e-3)


@pytest.mark.matrix
@pytest.mark.parametrize("name", SAID)
def test_texts_languages_and_timestamps_equal_openvino_genais(
    pipeline: WhisperPipeline, tools: Any, name: str
) -> None:
    expected = SAID[name]
    said = pipeline.generate(tools.speech(expected["seconds"]), **expected["parameters"])
    assert (said.texts, said.scores) == ([expected["text"]], [1.0])
    assert said.language == expected["language"]
    chunks = [[each.start_ts, each.end_ts, each.text] for each in said.chunks or []]
    assert [each[2] for each in chunks] == [each[2] for each in expected["chunks"]]
    for each, other in zip(chunks, expected["chunks"], strict=True):
        assert each[:2] == pytest.approx(other[:2], abs=1e-4)
    assert said.perf_metrics.get_num_generated_tokens() > 0


def test_text_is_streamed_and_a_streamer_can_stop_it(npu: WhisperPipeline, tools: Any) -> None:
    pieces: list[str] = []
    speech = tools.speech(2.0)
    whole = npu.generate(speech, streamer=pieces.append, max_new_tokens=10)
    assert "".join(pieces) == str(whole)
    assert len(pieces) > 5
    pieces.clear()

    def listen(text: str) -> StreamingStatus:
        pieces.append(text)
        return StreamingStatus.STOP if len(pieces) == 3 else StreamingStatus.RUNNING

    ended = npu.generate(speech, streamer=listen, max_new_tokens=10)
    assert str(ended) == "".join(pieces)
    assert str(whole).startswith(str(ended))


def test_a_text_without_an_end_fills_all_positions(npu: WhisperPipeline, tools: Any) -> None:
    said = npu.generate(tools.speech(2.0))
    assert said.perf_metrics.get_num_generated_tokens() <= 448 - 4
    assert str(said) == str(npu.generate(tools.speech(2.0))), "the next text is equal"


def test_parameters_are_checked(npu: WhisperPipeline, tools: Any) -> None:
    speech = tools.speech(1.0)
    for wrong, message in (
        ({"language": "klingon"}, "language = 'klingon': the model supports de, en"),
        ({"task": "sing"}, "task = 'sing'"),
        ({"word_timestamps": True}, "word_timestamps = True"),
        ({"is_multilingual": False, "language": "en"}, "for multilingual models"),
        ({"langage": "en"}, "unknown generation parameter 'langage'; did you mean language"),
    ):
        with pytest.raises(ConfigError, match=message):
            npu.generate(speech, **wrong)
    with pytest.raises(PromptError, match="pass more than 200 samples of 16000 Hz"):
        npu.generate(speech[:200])
    with pytest.raises(RuntimeFailure, match="at most 4 are possible; raise NPUW_LLM_MAX_PROMPT_"):
        npu.generate(speech, hotwords="acdc")


def test_folders_and_properties_are_checked(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(PropertyError, match="BLOB_PATH is not supported by WhisperPipeline"):
        WhisperPipeline(folder, "NPU", BLOB_PATH="x")
    for name in ("tokenizer.json", "openvino_encoder_model.xml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(ModelError, match=r"decoder_model\.xml: no such file; export the model"):
        WhisperPipeline(tmp_path, "NPU")
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "preprocessor_config.json").write_text('{"n_fft": "400"}')
    with pytest.raises(ModelError, match="n_fft = '400': must be an integer"):
        WhisperPipeline(tmp_path, "NPU")
