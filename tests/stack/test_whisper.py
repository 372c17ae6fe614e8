"""Speech recognition on the complete stack, compared to the real openvino_genai.

The model is tiny and random, its texts are letters; tools/make_whisper_goldens.py wrote them.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genai_layer import (
    ASRDecodedResultChunk,
    ASRGenerationConfig,
    ASRPerfMetrics,
    ASRPipeline,
    ConfigError,
    GenerationConfig,
    PromptError,
    PropertyError,
    RuntimeFailure,
    StreamingStatus,
    WhisperGenerationConfig,
    WhisperPipeline,
)
from genai_layer.errors import ModelError
from genai_layer.whisper.features import FeatureExtractor

GOLDENS = Path(__file__).resolve().parent.parent / "goldens"
SAID: dict[str, Any] = json.loads((GOLDENS / "whisper" / "transcriptions.json").read_text())
EXACT = {
    "CPU": {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"},
    "NPU": {"INFERENCE_PRECISION_HINT": "f32"},
}


@pytest.fixture(scope="module", params=["NPU", "CPU"])
def pipeline(whisper_folder: Path, request: pytest.FixtureRequest) -> WhisperPipeline:
    """Pipeline on this stack's NPU, and on the real OpenVINO."""
    return WhisperPipeline(whisper_folder, request.param, **EXACT[request.param])


@pytest.fixture(scope="module", params=["NPU", "CPU"])
def timed(whisper_folder: Path, request: pytest.FixtureRequest) -> WhisperPipeline:
    """Pipeline with timestamps of words, on both devices."""
    return WhisperPipeline(
        whisper_folder, request.param, **EXACT[request.param], word_timestamps=True
    )


@pytest.fixture(scope="module")
def npu(whisper_folder: Path) -> WhisperPipeline:
    return WhisperPipeline(whisper_folder, "NPU")


def test_a_spectrogram_equals_that_of_transformers(whisper_tools: Any) -> None:
    expected = np.load(GOLDENS / "whisper" / "spectrogram.npz")["spectrogram"]
    found = FeatureExtractor(feature_size=16).extract(whisper_tools.speech(4.0))
    assert found.shape == (16, 3000)
    np.testing.assert_allclose(found[:, ::10], expected, atol=2e-3)


@pytest.mark.matrix
@pytest.mark.parametrize("name", [name for name in SAID if not SAID[name]["words"]])
def test_texts_languages_and_timestamps_equal_openvino_genais(
    pipeline: WhisperPipeline, whisper_tools: Any, name: str
) -> None:
    expected = SAID[name]
    said = pipeline.generate(whisper_tools.speech(expected["seconds"]), **expected["parameters"])
    assert (said.texts, said.scores) == ([expected["text"]], [1.0])
    assert said.language == expected["language"]
    chunks = [[each.start_ts, each.end_ts, each.text] for each in said.chunks or []]
    assert [each[2] for each in chunks] == [each[2] for each in expected["chunks"]]
    for each, other in zip(chunks, expected["chunks"], strict=True):
        assert each[:2] == pytest.approx(other[:2], abs=1e-4)
    assert said.perf_metrics.get_num_generated_tokens() > 0


@pytest.mark.matrix
@pytest.mark.parametrize("name", [name for name in SAID if SAID[name]["words"]])
def test_words_and_their_times_equal_openvino_genais(
    timed: WhisperPipeline, whisper_tools: Any, name: str
) -> None:
    expected = SAID[name]
    said = timed.generate(whisper_tools.speech(expected["seconds"]), **expected["parameters"])
    assert said.texts == [expected["text"]]
    assert said.words is not None
    assert [[each.word, each.token_ids] for each in said.words] == [
        each[2:] for each in expected["words"]
    ]
    for each, other in zip(said.words, expected["words"], strict=True):
        assert (each.start_ts, each.end_ts) == pytest.approx(tuple(other[:2]), abs=1e-4)
    metrics = said.perf_metrics
    assert metrics.get_word_level_timestamps_processing_duration().mean > 0
    assert metrics.get_features_extraction_duration().mean > 0
    times = metrics.get_encode_inference_duration(), metrics.get_decode_inference_duration()
    assert all(0 < each.mean < metrics.get_generate_duration().mean for each in times)


@pytest.mark.parametrize("head", [(7, 0), (0, 9)])
def test_alignment_heads_must_exist(
    timed: WhisperPipeline, whisper_tools: Any, head: tuple[int, int]
) -> None:
    with pytest.raises(ConfigError, match=r"alignment_heads has .* no such layer or head"):
        timed.generate(whisper_tools.speech(1.0), alignment_heads=[head], max_new_tokens=2)


def test_text_is_streamed_and_a_streamer_can_stop_it(
    npu: WhisperPipeline, whisper_tools: Any
) -> None:
    pieces: list[str] = []
    speech = whisper_tools.speech(2.0)
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


def test_a_text_without_an_end_fills_all_positions(
    npu: WhisperPipeline, whisper_tools: Any
) -> None:
    said = npu.generate(whisper_tools.speech(2.0))
    assert said.perf_metrics.get_num_generated_tokens() <= 448 - 4
    assert str(said) == str(npu.generate(whisper_tools.speech(2.0))), "the next text is equal"


def test_parameters_are_checked(npu: WhisperPipeline, whisper_tools: Any) -> None:
    speech = whisper_tools.speech(1.0)
    for wrong, message in (
        ({"language": "klingon"}, "language = 'klingon': the model supports de, en"),
        ({"task": "sing"}, "task = 'sing'"),
        ({"word_timestamps": True, "alignment_heads": []}, "alignment_heads is empty"),
        ({"is_multilingual": False, "language": "en"}, "for multilingual models"),
        ({"langage": "en"}, "unknown generation parameter 'langage'; did you mean language"),
    ):
        with pytest.raises(ConfigError, match=message):
            npu.generate(speech, **wrong)
    for given in (3, GenerationConfig()):
        with pytest.raises(ConfigError, match=r"pass a WhisperGenerationConfig"):
            npu.generate(speech, given)  # pyright: ignore[reportArgumentType] (users err)
    with pytest.raises(ConfigError, match="create it with word_timestamps=True"):
        npu.generate(speech, word_timestamps=True)
    with pytest.raises(PromptError, match="pass more than 200 samples of 16000 Hz"):
        npu.generate(speech[:200])
    with pytest.raises(PromptError, match="raw_speech_input = 'speech"):
        npu.generate("speech.wav")  # pyright: ignore[reportArgumentType] (users err)


def test_prompts_and_hotwords_need_no_option(npu: WhisperPipeline, whisper_tools: Any) -> None:
    expected, speech = SAID["prompted"], whisper_tools.speech(SAID["prompted"]["seconds"])
    plain = str(npu.generate(speech, max_new_tokens=12))
    assert str(npu.generate(speech, **expected["parameters"])) == expected["text"] != plain
    assert str(npu.generate(speech, max_new_tokens=12)) == plain, "the next text has no context"


def test_all_positions_but_one_may_be_the_prompt(npu: WhisperPipeline, whisper_tools: Any) -> None:
    speech = whisper_tools.speech(1.0)
    for letters, tokens in ((441, 1), (440, 2)):  # six other tokens, of which one is a space
        said = npu.generate(speech, initial_prompt="Z" * letters, max_new_tokens=9)
        assert said.perf_metrics.get_num_generated_tokens() == tokens
    with pytest.raises(PromptError, match="the prompt fills 448 of 448 positions; shorten"):
        npu.generate(speech, initial_prompt="Z" * 442)


@pytest.mark.long
def test_a_given_length_limits_all_prompts(whisper_folder: Path, whisper_tools: Any) -> None:
    pipeline = WhisperPipeline(whisper_folder, "NPU", MAX_PROMPT_LEN=6)
    with pytest.raises(RuntimeFailure, match="at most 6 are possible; raise NPUW_LLM_MAX_PROMPT_"):
        pipeline.generate(whisper_tools.speech(1.0), hotwords="acdc")


def test_folders_and_properties_are_checked(whisper_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(PropertyError, match="BLOB_PATH is not supported by WhisperPipeline"):
        WhisperPipeline(whisper_folder, "NPU", BLOB_PATH="x")
    for name in ("tokenizer.json", "openvino_encoder_model.xml"):
        (tmp_path / name).write_bytes((whisper_folder / name).read_bytes())
    with pytest.raises(ModelError, match=r"decoder_model\.xml: no such file; export the model"):
        WhisperPipeline(tmp_path, "NPU")
    for path in whisper_folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "preprocessor_config.json").write_text('{"n_fft": "400"}')
    with pytest.raises(ModelError, match="n_fft = '400': must be an integer"):
        WhisperPipeline(tmp_path, "NPU")


def test_asr_has_the_same_texts_times_and_words(whisper_folder: Path, whisper_tools: Any) -> None:
    pipeline = ASRPipeline(whisper_folder, "NPU", word_timestamps=True)
    expected = WhisperPipeline(whisper_folder, "NPU", word_timestamps=True)
    asked = {"return_timestamps": True, "max_new_tokens": 30}
    heard: list[str] = []
    said = pipeline.generate(whisper_tools.speech(4.0), streamer=heard.append, **asked)
    other = expected.generate(whisper_tools.speech(4.0), **asked)
    assert (str(said), said.languages) == (str(other), [other.language])
    assert "".join(heard) == str(said)
    assert other.chunks
    assert other.words
    assert said.chunks == [
        [ASRDecodedResultChunk(each.start_ts, each.end_ts, each.text) for each in other.chunks]
    ]
    assert said.words is not None
    assert [each.token_ids for each in said.words[0]] == [each.token_ids for each in other.words]
    both = said.perf_metrics + said.perf_metrics
    assert isinstance(both, ASRPerfMetrics)
    assert len(both.asr_raw_metrics.encode_inference_durations) == 2 * len(
        said.perf_metrics.asr_raw_metrics.encode_inference_durations
    )


def test_asr_takes_parameters_as_whisper_does(whisper_folder: Path, whisper_tools: Any) -> None:
    pipeline = ASRPipeline(whisper_folder, "NPU")
    config = pipeline.get_generation_config()
    config.language, config.max_new_tokens = "en", 5
    pipeline.set_generation_config(config)
    assert pipeline.get_generation_config() == config
    said = pipeline.generate(whisper_tools.speech(1.0))
    assert said.languages == ["en"]
    assert said.chunks is None
    assert said.words is None
    with pytest.raises(ConfigError, match="context: only for Qwen3-ASR"):
        pipeline.generate(whisper_tools.speech(1.0), context="names")
    with pytest.raises(ConfigError, match="num_beams is not supported for speech; set it to 1"):
        pipeline.generate(whisper_tools.speech(1.0), ASRGenerationConfig(num_beams=2))
    whisper: Any = WhisperGenerationConfig(max_new_tokens=2)
    for take in (
        pipeline.set_generation_config,
        partial(pipeline.generate, whisper_tools.speech(1.0)),
    ):
        with pytest.raises(ConfigError, match=r"pass an ASRGenerationConfig"):
            take(whisper)


def test_asr_names_models_that_it_cannot_run(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "qwen3_asr"}')
    with pytest.raises(ModelError, match="model_type = 'qwen3_asr' is not supported"):
        ASRPipeline(tmp_path, "NPU")
    with pytest.raises(ModelError, match="none: no such folder"):
        ASRPipeline(tmp_path / "none", "NPU")
