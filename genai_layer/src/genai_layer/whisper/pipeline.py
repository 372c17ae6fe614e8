"""Speech recognition pipeline.

How it works. The spectrogram is read window by window (30 seconds). Long audio always generates
timestamps, as the next window begins at the end of the last complete segment.

Source: openvino_genai.WhisperPipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.errors import PromptError, RuntimeFailure
from genai_layer.exclusive import Exclusive, one_at_a_time
from genai_layer.model_folder import read_tokenizer
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.properties import read_properties
from genai_layer.runtime import Array, Core, InferRequest
from genai_layer.runtimes import load_core
from genai_layer.sinks import Streamer, make_sink
from genai_layer.streamers import StreamingStatus
from genai_layer.tokenizer import Tokenizer
from genai_layer.whisper.decoder import Decoder, TokenText
from genai_layer.whisper.features import window
from genai_layer.whisper.folder import WhisperFolder
from genai_layer.whisper.generation_config import WhisperGenerationConfig
from genai_layer.whisper.properties import split_properties
from genai_layer.whisper.results import WhisperDecodedResultChunk, WhisperDecodedResults
from genai_layer.whisper.timestamps import Segment, cut_segments

RawSpeech = Sequence[float] | npt.NDArray[np.floating[Any]]
"""Samples from -1 to 1, at the model's sampling rate (16 kHz)."""


class WhisperPipeline(Exclusive):
    """Transcription of speech.

    Args:
        models_path: a folder with ``openvino_encoder_model.xml``, ``openvino_decoder_model.xml``
            and ``tokenizer.json``.
        device: e.g. "NPU" or "CPU".
        core: a runtime, instead of the device's.
        properties: of the runtime, under OpenVINO's names. On NPU, MAX_PROMPT_LEN (4) limits the
            prompt: initial_prompt, hotwords, and up to four further tokens.

    Raises:
        ModelError: the folder lacks a file, or one of its files is broken.
        PropertyError: a property or the device is unknown.
        RuntimeFailure: the runtime cannot compile the model.
    """

    def __init__(
        self,
        models_path: str | Path,
        device: str = "CPU",
        *,
        core: Core | None = None,
        **properties: Any,
    ) -> None:
        watch = Stopwatch()
        folder = Path(models_path)
        self._tokenizer = read_tokenizer(folder)
        self._model = WhisperFolder.read(folder, self._tokenizer)
        self._config = self._model.config
        properties = read_properties(properties)
        encoder, decoder = properties, properties
        if device == "NPU":
            eos, frames = self._config.eos_token_id, self._model.source_positions
            encoder, decoder = split_properties(properties, eos, frames)
        core = load_core(device) if core is None else core
        try:
            hears = core.compile_model(self._model.encoder, device, encoder)
            writes = core.compile_model(self._model.decoder, device, decoder)
            self._encoder: InferRequest = hears.create_infer_request()
            self._decoder: InferRequest = writes.create_infer_request()
        except RuntimeError as error:
            raise RuntimeFailure(str(error)) from error
        self._load_time = watch.microseconds() / 1000

    def get_tokenizer(self) -> Tokenizer:
        """Return the tokenizer."""
        return self._tokenizer

    def get_generation_config(self) -> WhisperGenerationConfig:
        """Return a copy of the default parameters."""
        return self._config.model_copy(deep=True)

    def set_generation_config(self, config: WhisperGenerationConfig) -> None:
        """Set the default parameters; missing stop tokens and languages are the previous ones.

        Raises:
            ConfigError: the parameters contradict each other; the previous ones stay.
        """
        self._config = self._effective(config, {})

    @one_at_a_time
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
            PromptError: the audio is too short, or the context is too long.
            RuntimeFailure: the runtime failed.
        """
        began = Stopwatch()
        config = self._effective(generation_config or self._config, kwargs)
        audio = np.asarray(raw_speech_input, np.float32)
        features = self._model.features.extract(audio)
        metrics = PerfMetrics(self._load_time)
        text = TokenText(self._tokenizer.decode, make_sink(streamer, hold=False))
        said = _Transcription(self, config, metrics, text)
        said.run(features)
        metrics.num_generated_tokens += len(said.tokens)
        metrics.raw_metrics.generate_durations.append(began.microseconds())
        return WhisperDecodedResults(
            texts=[self._tokenizer.decode(said.tokens)],
            scores=[1.0],
            language=said.language,
            chunks=self._chunks(said.segments) if config.return_timestamps else None,
            perf_metrics=metrics,
        )

    def _chunks(self, segments: Sequence[Segment]) -> list[WhisperDecodedResultChunk]:
        decode = self._tokenizer.decode
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
        return found

    def encode(self, features: Array) -> Array:
        """Encode one window, f32 [1, filters, frames]; return a copy of the hidden states.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        try:
            self._encoder.infer({"input_features": features})
            return np.array(self._encoder.get_tensor("last_hidden_state").data)
        except RuntimeError as error:
            raise RuntimeFailure(str(error)) from error

    def decoder(self, metrics: PerfMetrics) -> Decoder:
        """Return the decoder of windows."""
        return Decoder(self._decoder, self._model.target_positions, metrics.raw_metrics)

    @property
    def model(self) -> WhisperFolder:
        """Files of the model folder."""
        return self._model


class _Transcription:
    """Transcription of one audio, window by window."""

    def __init__(
        self,
        pipeline: WhisperPipeline,
        config: WhisperGenerationConfig,
        metrics: PerfMetrics,
        text: TokenText,
    ) -> None:
        self._pipeline = pipeline
        self._config = config
        self._decoder = pipeline.decoder(metrics)
        self._text = text
        self._begin: list[int] = []
        self.language = "en"
        self.tokens: list[int] = []
        self.segments: list[Segment] = []

    def run(self, features: Array) -> None:
        """Transcribe all windows."""
        config, extractor = self._config, self._pipeline.model.features
        length, frames = features.shape[1], extractor.nb_max_frames
        timestamps = config.return_timestamps or length > frames
        seconds = extractor.hop_length / extractor.sampling_rate
        step = extractor.chunk_length / self._pipeline.model.source_positions
        first, frame, status = config.first_timestamp, 0, StreamingStatus.RUNNING
        sink: Callable[[int], StreamingStatus] = _go_on if timestamps else self._text
        while frame < length and status is StreamingStatus.RUNNING:
            states = self._pipeline.encode(window(features, frame, frames))
            prompt = self._prompt(states, frame, timestamps)
            found = self._decoder.decode(states, prompt, config, timestamps, sink)
            status = found.status
            if not timestamps:
                self.tokens += found.tokens
                break
            cut = cut_segments(found.tokens, first, frames, step, frame * seconds)
            self.segments += cut.parts
            self.tokens += cut.tokens
            for token in cut.tokens:
                status = max(status, self._text(token))
            frame += cut.frames
        self._text.end()

    def _prompt(self, states: Array, frame: int, timestamps: bool) -> list[int]:
        """Return the prompt of a window.

        Raises:
            PromptError: the prompt leaves no position for a token.
        """
        config = self._config
        self._begin = self._begin or self._beginning(states)
        context = self._words(config.initial_prompt) if frame == 0 else []
        context += self._words(config.hotwords)
        before = [config.prev_sot_token_id, *context] if context else []
        prompt = [*before, *self._begin]
        prompt += [] if timestamps else [config.no_timestamps_token_id]
        positions = self._pipeline.model.target_positions
        if len(prompt) >= positions:
            raise PromptError(
                f"the prompt fills {len(prompt)} of {positions} positions; shorten "
                "initial_prompt or hotwords"
            )
        return prompt

    def _beginning(self, states: Array) -> list[int]:
        """Return start, language and task tokens; the language is detected if it is not set."""
        config = self._config
        if not config.is_multilingual:
            return [config.decoder_start_token_id]
        language = config.language or self._decoder.detect_language(states, config)
        self.language = language.strip("<|>")
        token = config.language_token_id(language)
        return [config.decoder_start_token_id, token, config.task_token_id]

    def _words(self, text: str | None) -> list[int]:
        if not text:
            return []
        ids = self._pipeline.get_tokenizer().encode(f" {text}", add_special_tokens=False)
        return ids.input_ids.data[0].tolist()


def _go_on(token: int) -> StreamingStatus:
    del token
    return StreamingStatus.RUNNING
