"""Speech recognition pipeline.

Source: openvino_genai.WhisperPipeline, docs/reference/genai.md#speech-recognition.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from genai_layer.checked import checked
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.detokenizer import TextDecoder
from genai_layer.errors import ConfigError, PromptError
from genai_layer.exclusive import Exclusive, one_at_a_time
from genai_layer.model_folder import read_tokenizer
from genai_layer.model_kinds import check_reader
from genai_layer.properties import for_device, read_properties
from genai_layer.runtime import Core
from genai_layer.runtimes import load_core
from genai_layer.sinks import Streamer, make_sink
from genai_layer.tokenizer import Tokenizer
from genai_layer.whisper.decoder import Segment, TokenText
from genai_layer.whisper.features import Audio
from genai_layer.whisper.generation_config import WhisperGenerationConfig
from genai_layer.whisper.models import WhisperFolder, WhisperModels
from genai_layer.whisper.results import Recorder, WhisperDecodedResultChunk, WhisperDecodedResults
from genai_layer.whisper.transcription import Transcription

RawSpeech = npt.NDArray[np.floating[Any]] | Sequence[float]
"""Samples from -1 to 1, at the model's sampling rate (16 kHz)."""


class WhisperPipeline(Exclusive):
    """Transcription of speech.

    Args:
        models_path: a folder with ``openvino_encoder_model.xml``, ``openvino_decoder_model.xml``
            and ``tokenizer.json``.
        device: e.g. "NPU" or "CPU".
        core: a runtime, instead of the device's.
        word_timestamps: True if transcriptions may have timestamps of words, and have them by
            default. On NPU, every prompt then takes the time of 447 tokens.
        properties: of the runtime, under OpenVINO's names. On NPU, the first prompt with
            initial_prompt or hotwords compiles a second decoder, whose prompts take the time of
            447 tokens; with MAX_PROMPT_LEN there is one decoder, and that limit for all prompts:
            initial_prompt, hotwords, and up to five further tokens.

    Raises:
        ModelError: the folder lacks a file, or one of its files is broken.
        PropertyError: a property or the device is unknown.
        RuntimeFailure: the runtime cannot compile the model.
    """

    @checked
    def __init__(
        self,
        models_path: str | bytes | os.PathLike[str],
        device: str = "CPU",
        *,
        core: Core | None = None,
        word_timestamps: bool = False,
        **properties: Any,
    ) -> None:
        watch = Stopwatch()
        folder = Path(os.fsdecode(models_path))
        check_reader(folder, "WhisperPipeline")
        tokenizer = read_tokenizer(folder)
        read = WhisperFolder.read(folder, tokenizer)
        core = load_core(device) if core is None else core
        given = read_properties(for_device(properties, device))
        self._models = WhisperModels(read, tokenizer, core, device, given, word_timestamps)
        self._config = read.config.updated({"word_timestamps": word_timestamps})
        self._load_time = watch.microseconds() / 1000

    def get_tokenizer(self) -> Tokenizer:
        """Return the tokenizer."""
        return self._models.tokenizer

    def get_generation_config(self) -> WhisperGenerationConfig:
        """Return a copy of the default parameters."""
        return self._config.updated({})

    @checked
    def set_generation_config(self, config: WhisperGenerationConfig) -> None:
        """Set the default parameters; missing stop tokens and languages are the previous ones.

        Raises:
            ConfigError: the parameters contradict each other; the previous ones stay.
        """
        self._config = self._effective(config, {})

    @one_at_a_time
    @checked
    def generate(
        self,
        raw_speech_input: RawSpeech,
        generation_config: WhisperGenerationConfig | None = None,
        streamer: Streamer = None,
        **kwargs: Any,
    ) -> WhisperDecodedResults:
        """Transcribe speech.

        Args:
            raw_speech_input: the audio.
            generation_config: parameters, instead of the pipeline's.
            streamer: receives the text as it is generated; with timestamps, window by window.
            kwargs: single parameters, which override the others.

        Raises:
            BusyError: the pipeline is generating, in another thread or outside a callback.
            ConfigError: parameters are unknown or contradict each other.
            PromptError: the audio is too short or consists of no numbers, or the context is too
                long.
            RuntimeFailure: the runtime failed.
        """
        recorder = Recorder(self._load_time)
        config = self._effective(generation_config or self._config, kwargs)
        decode = TextDecoder(self._models.tokenizer)
        text = TokenText(decode, make_sink(streamer, hold=False))
        said = Transcription(self._models, config, recorder, text)
        said.run(read_audio(raw_speech_input))
        with recorder.measure(recorder.raw.detokenization_durations):
            texts = [decode(said.tokens)]
        recorder.metrics.num_generated_tokens = len(said.tokens)
        recorder.finish()
        return WhisperDecodedResults(
            texts=texts,
            scores=[1.0],
            language=said.language,
            chunks=self._chunks(said.segments) if config.return_timestamps else None,
            words=said.words if config.word_timestamps else None,
            perf_metrics=recorder.metrics,
        )

    def _chunks(self, segments: Sequence[Segment]) -> list[WhisperDecodedResultChunk]:
        decode = TextDecoder(self._models.tokenizer)
        return [
            WhisperDecodedResultChunk(each.start, each.end, decode(each.tokens))
            for each in segments
        ]

    def _effective(
        self, config: WhisperGenerationConfig, changes: dict[str, Any]
    ) -> WhisperGenerationConfig:
        """Return the parameters of one call.

        Raises:
            ConfigError: parameters are unknown or contradict each other.
        """
        found = config.updated(changes).with_stops_of(self._config)
        if not found.lang_to_id:
            found = found.updated({"lang_to_id": self._config.lang_to_id})
        found.validate()
        if found.word_timestamps and not self._models.scores:
            raise ConfigError(
                "word_timestamps = True: the pipeline is compiled without scores of attention; "
                "create it with word_timestamps=True"
            )
        return found


def read_audio(given: RawSpeech) -> Audio:
    """Return the samples that a caller passes.

    Raises:
        PromptError: the samples are no numbers, or one is not finite in f32.
    """
    samples = np.asarray(given)
    if samples.dtype.kind not in "iuf":
        raise PromptError(
            f"the audio, {samples.dtype} {list(samples.shape)}, is no sequence of numbers; pass an "
            "array or a list of floats"
        )
    with np.errstate(over="ignore"):
        found = samples.astype(np.float32)
    broken = np.argwhere(~np.isfinite(found))
    if len(broken):
        place = tuple(broken[0].tolist())
        raise PromptError(
            f"the audio: sample {place[0]} is {samples[place]}; pass samples from -1 to 1"
        )
    return found
