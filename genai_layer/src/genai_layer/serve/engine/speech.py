"""Loaded speech recogniser: one audio at a time on the device."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from genai_layer.errors import ConfigError
from genai_layer.serve.engine.activity import Commons
from genai_layer.serve.engine.text_tasks import Tasks
from genai_layer.serve.errors import BadRequest
from genai_layer.whisper.features import Audio
from genai_layer.whisper.pipeline import WhisperPipeline
from genai_layer.whisper.results import WhisperDecodedResults

_ENGLISH = {"<|en|>": 0}
"""Languages of a model that is not multilingual."""


class ServedSpeechModel(Tasks):
    """Speech recogniser of a server.

    Args:
        name: see ``Tasks``.
        pipeline: the model, which nobody else uses.
        commons: see ``Tasks``.
    """

    def __init__(self, name: str, pipeline: WhisperPipeline, commons: Commons) -> None:
        super().__init__(name, commons)
        self._pipeline = pipeline

    @property
    def times_words(self) -> bool:
        """True if transcriptions may have timestamps of words."""
        return self._pipeline.get_generation_config().word_timestamps

    def language_of(self, code: str | None) -> str | None:
        """Return the pipeline's parameter of a language; a model of English alone takes none.

        Raises:
            BadRequest: the model does not know the language.
        """
        config = self._pipeline.get_generation_config()
        if not config.is_multilingual:
            config = config.updated({"lang_to_id": _ENGLISH})
        try:
            if code is not None:
                config.language_token_id(code)
        except ConfigError as error:
            raise BadRequest(str(error), param="language") from error
        return code if config.is_multilingual else None

    async def transcribe(
        self, audio: Audio, parameters: Mapping[str, Any]
    ) -> WhisperDecodedResults:
        """Transcribe samples of 16 kHz; if the client leaves, the work ends at the next text.

        Args:
            audio: the samples.
            parameters: of the generation, which override the model's.

        Raises:
            QueueFull, ShuttingDown, TimedOut: see ``Tasks``.
            ConfigError, PromptError: see ``WhisperPipeline.generate``.
        """
        left = threading.Event()

        def compute(audio: Audio) -> tuple[WhisperDecodedResults, int]:
            found = self._pipeline.generate(audio, streamer=lambda _: left.is_set(), **parameters)
            return found, 0

        try:
            (found,), _ = await self._each([audio], compute)
        finally:
            left.set()
        return found
