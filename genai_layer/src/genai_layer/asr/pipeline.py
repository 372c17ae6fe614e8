"""Speech recognition pipeline for any supported model; Whisper's is the only one.

Source: openvino_genai.ASRPipeline, docs/reference/genai.md#speech-recognition.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from genai_layer.asr.generation_config import ASRGenerationConfig
from genai_layer.asr.results import ASRDecodedResults
from genai_layer.errors import ModelError
from genai_layer.files import is_folder
from genai_layer.json_file import read_object
from genai_layer.sinks import Streamer
from genai_layer.tokenizer import Tokenizer
from genai_layer.whisper.generation_config import check_kind
from genai_layer.whisper.pipeline import RawSpeech, WhisperPipeline


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

    def set_generation_config(self, config: ASRGenerationConfig) -> None:
        """Set the default parameters; missing stop tokens and languages are the previous ones.

        Raises:
            ConfigError: the parameters contradict each other; the previous ones stay.
        """
        check_kind(config, ASRGenerationConfig)
        self._whisper.set_generation_config(config.for_whisper())
        self._config = _for_asr(self._whisper)

    def generate(
        self,
        audio_inputs: RawSpeech,
        generation_config: ASRGenerationConfig | None = None,
        streamer: Streamer = None,
        **kwargs: Any,
    ) -> ASRDecodedResults:
        """Transcribe speech; see ``WhisperPipeline.generate``."""
        config = generation_config or self._config
        check_kind(config, ASRGenerationConfig)
        config = config.updated(kwargs)
        found = self._whisper.generate(audio_inputs, config.for_whisper(), streamer)
        return ASRDecodedResults.of(found)


def _for_asr(pipeline: WhisperPipeline) -> ASRGenerationConfig:
    """Return the pipeline's default parameters."""
    config = pipeline.get_generation_config()
    values = {name: getattr(config, name) for name in type(config).model_fields}
    return ASRGenerationConfig.model_construct(**values)
