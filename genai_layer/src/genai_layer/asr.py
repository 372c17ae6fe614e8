"""Speech recognition with the names of openvino_genai's ASRPipeline, over WhisperPipeline.

ASRPipeline is for any supported model; Whisper's is the only one.

Source: openvino_genai.ASRPipeline, ASRGenerationConfig and ASRDecodedResults,
docs/reference/genai.md#speech-recognition.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from genai_layer.checked import checked
from genai_layer.errors import ConfigError, ModelError
from genai_layer.files import is_folder, read_object
from genai_layer.generation_rules import Rule, contradictions, unsupported
from genai_layer.sinks import Streamer
from genai_layer.tokenizer import Tokenizer
from genai_layer.whisper.generation_config import WhisperGenerationConfig
from genai_layer.whisper.pipeline import RawSpeech, WhisperPipeline
from genai_layer.whisper.results import (
    WhisperDecodedResults,
    WhisperPerfMetrics,
    WhisperRawPerfMetrics,
)


class ASRGenerationConfig(WhisperGenerationConfig):
    """Parameters of a transcription; the pipeline checks those of the model."""

    context: str | None = None
    """System prompt of Qwen3-ASR models, which are not supported."""

    def __init__(
        self, json_path: str | bytes | os.PathLike[str] | None = None, **values: Any
    ) -> None:
        # Without this method, type checkers derive one from the fields, which has no json_path.
        super().__init__(json_path, **values)

    def for_whisper(self) -> WhisperGenerationConfig:
        """Return the parameters of a Whisper model.

        Raises:
            ConfigError: a parameter is for other models.
        """
        if self.context is not None:
            raise ConfigError("context: only for Qwen3-ASR models; set it to None")
        values = {name: getattr(self, name) for name in WhisperGenerationConfig.model_fields}
        return WhisperGenerationConfig.model_construct(**values)

    def _rules(self) -> Iterator[Rule]:
        yield from contradictions(self)
        yield from unsupported(self)


ASRRawPerfMetrics = WhisperRawPerfMetrics


@dataclass(slots=True)
class ASRPerfMetrics(WhisperPerfMetrics):
    """Measurements of one transcription, or the sum of several; getters return milliseconds."""

    @property
    def asr_raw_metrics(self) -> ASRRawPerfMetrics:
        """Measurements of speech recognition, in microseconds."""
        return self.whisper_raw_metrics


@dataclass(slots=True)
class ASRDecodedResultChunk:
    """Segment or word of a text, with its times in seconds."""

    start_ts: float = 0.0
    end_ts: float = 0.0
    """End, or -1 if the audio ends within the segment."""
    text: str = ""
    token_ids: list[int] = field(default_factory=list[int])
    """Tokens of a word; empty for a segment."""


@dataclass(frozen=True, slots=True)
class ASRDecodedResults:
    """Texts of audios, of which there is one."""

    texts: list[str]
    scores: list[float]
    languages: list[str]
    """Given or detected languages, e.g. "en"."""
    chunks: list[list[ASRDecodedResultChunk]] | None = None
    """Segments; None without return_timestamps."""
    words: list[list[ASRDecodedResultChunk]] | None = None
    """Words; None without word_timestamps."""
    perf_metrics: ASRPerfMetrics = field(default_factory=ASRPerfMetrics, repr=False)

    def __str__(self) -> str:
        return self.texts[0]

    @staticmethod
    def of(found: WhisperDecodedResults) -> ASRDecodedResults:
        """Return the results of a Whisper model in this form."""
        chunks, words, metrics = found.chunks, found.words, found.perf_metrics
        segments = [
            ASRDecodedResultChunk(each.start_ts, each.end_ts, each.text) for each in chunks or []
        ]
        timed = [
            ASRDecodedResultChunk(each.start_ts, each.end_ts, each.word, each.token_ids)
            for each in words or []
        ]
        return ASRDecodedResults(
            texts=found.texts,
            scores=found.scores,
            languages=[found.language],
            chunks=[segments] if segments else None,
            words=None if words is None else [timed],
            perf_metrics=ASRPerfMetrics(
                **{each.name: getattr(metrics, each.name) for each in fields(metrics)}
            ),
        )


class ASRPipeline:
    """Transcription of speech.

    Args:
        models_path: the folder of a Whisper model, see ``WhisperPipeline``.
        device: e.g. "NPU" or "CPU".
        properties: those of ``WhisperPipeline``, e.g. word_timestamps.

    Raises:
        ModelError: the folder lacks a file, one of its files is broken, or the model is no Whisper.
        PropertyError: a property or the device is unknown.
        RuntimeFailure: the runtime cannot compile the model.
    """

    @checked
    def __init__(
        self, models_path: str | bytes | os.PathLike[str], device: str, **properties: Any
    ) -> None:
        folder = Path(os.fsdecode(models_path))
        if not is_folder(folder):
            raise ModelError(f"{folder}: no such folder")
        path = folder / "config.json"
        kind = read_object(path).get("model_type")
        if kind != "whisper":
            raise ModelError(f"{path}: model_type = {kind!r} is not supported; use a Whisper model")
        self._whisper = WhisperPipeline(folder, device, **properties)
        self._config = _for_asr(self._whisper)

    def get_tokenizer(self) -> Tokenizer:
        """Return the tokenizer."""
        return self._whisper.get_tokenizer()

    def get_generation_config(self) -> ASRGenerationConfig:
        """Return a copy of the default parameters."""
        return self._config.updated({})

    @checked
    def set_generation_config(self, config: ASRGenerationConfig) -> None:
        """Set the default parameters; missing stop tokens and languages are the previous ones.

        Raises:
            ConfigError: the parameters contradict each other; the previous ones stay.
        """
        self._whisper.set_generation_config(config.for_whisper())
        self._config = _for_asr(self._whisper)

    @checked
    def generate(
        self,
        audio_inputs: RawSpeech,
        generation_config: ASRGenerationConfig | None = None,
        streamer: Streamer = None,
        **kwargs: Any,
    ) -> ASRDecodedResults:
        """Transcribe speech; see ``WhisperPipeline.generate``."""
        config = generation_config or self._config
        config = config.updated(kwargs)
        found = self._whisper.generate(audio_inputs, config.for_whisper(), streamer)
        return ASRDecodedResults.of(found)


def _for_asr(pipeline: WhisperPipeline) -> ASRGenerationConfig:
    """Return the pipeline's default parameters."""
    config = pipeline.get_generation_config()
    values = {name: getattr(config, name) for name in type(config).model_fields}
    return ASRGenerationConfig.model_construct(**values)
