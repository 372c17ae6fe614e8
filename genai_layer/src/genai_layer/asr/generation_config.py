"""Parameters of ``ASRPipeline``.

Source: openvino_genai.ASRGenerationConfig, docs/reference/genai.md#speech-recognition.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from genai_layer.errors import ConfigError
from genai_layer.generation_rules import Rule, contradictions, unsupported
from genai_layer.whisper.generation_config import WhisperGenerationConfig


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
