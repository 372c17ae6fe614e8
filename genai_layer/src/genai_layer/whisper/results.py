"""Results of ``WhisperPipeline.generate``, durations of transcriptions, and their clock.

Source: openvino_genai.WhisperDecodedResults and WhisperPerfMetrics,
docs/reference/genai.md#speech-recognition.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from genai_layer.decoding.stopwatch import Stopwatch, TokenTimes
from genai_layer.perf_metrics import MeanStdPair, PerfMetrics


@dataclass(slots=True)
class WhisperRawPerfMetrics:
    """Measurements in microseconds."""

    features_extraction_durations: list[float] = field(default_factory=list[float])
    """One entry per generation."""
    word_level_timestamps_processing_durations: list[float] = field(default_factory=list[float])
    """One entry per generation, 0 without timestamps of words."""
    encode_inference_durations: list[float] = field(default_factory=list[float])
    """One entry per window of the encoder."""
    decode_inference_durations: list[float] = field(default_factory=list[float])
    """One entry per inference of the decoder that generates a token."""

    def __iadd__(self, other: WhisperRawPerfMetrics) -> Self:
        for name in WhisperRawPerfMetrics.__slots__:
            getattr(self, name).extend(getattr(other, name))
        return self


@dataclass(slots=True)
class WhisperPerfMetrics(PerfMetrics):
    """Measurements of one transcription, or the sum of several; getters return milliseconds."""

    whisper_raw_metrics: WhisperRawPerfMetrics = field(default_factory=WhisperRawPerfMetrics)

    def get_features_extraction_duration(self) -> MeanStdPair:
        """Time to compute the spectrogram."""
        return MeanStdPair.of(self.whisper_raw_metrics.features_extraction_durations)

    def get_word_level_timestamps_processing_duration(self) -> MeanStdPair:
        """Time to find the timestamps of words."""
        durations = self.whisper_raw_metrics.word_level_timestamps_processing_durations
        return MeanStdPair.of(durations)

    def get_encode_inference_duration(self) -> MeanStdPair:
        """Time of the encoder, per window."""
        return MeanStdPair.of(self.whisper_raw_metrics.encode_inference_durations)

    def get_decode_inference_duration(self) -> MeanStdPair:
        """Time of the decoder, per token."""
        return MeanStdPair.of(self.whisper_raw_metrics.decode_inference_durations)

    def __iadd__(self, other: PerfMetrics) -> Self:
        """Add the measurements of another transcription.

        Raises:
            GenAIUsageError: the other transcription belongs to another pipeline.
        """
        # Without arguments, super() would look for the class that slots=True has replaced.
        PerfMetrics.__iadd__(self, other)
        if isinstance(other, WhisperPerfMetrics):
            self.whisper_raw_metrics += other.whisper_raw_metrics
        return self


class Recorder:
    """Collector of the measurements of one transcription.

    Args:
        load_time: milliseconds in which the pipeline was loaded.
    """

    def __init__(self, load_time: float) -> None:
        self.metrics = WhisperPerfMetrics(load_time)
        self.raw = self.metrics.raw_metrics
        self.speech = self.metrics.whisper_raw_metrics
        self.words: list[float] = []
        """Durations of the search for times of words, one per window, in microseconds."""
        self.detections: list[float] = []
        """Durations of the detection of languages, in microseconds."""
        self._began = Stopwatch()
        self.tokens = TokenTimes(self.raw, self._began)
        """Times at which tokens are ready."""

    @contextmanager
    def measure(self, *durations: list[float]) -> Generator[None]:
        """Append the duration of a block, in microseconds, to each list."""
        watch = Stopwatch()
        yield
        took = watch.microseconds()
        for each in durations:
            each.append(took)

    def finish(self) -> None:
        """Add what is measured once per generation."""
        parts = self.speech.encode_inference_durations, self.raw.token_infer_durations
        self.raw.inference_durations.append(sum(map(sum, (*parts, self.detections))))
        self.raw.generate_durations.append(self._began.microseconds())
        self.speech.word_level_timestamps_processing_durations.append(sum(self.words))


@dataclass(frozen=True, slots=True)
class WhisperDecodedResultChunk:
    """Segment of a text, with its times in seconds."""

    start_ts: float = 0.0
    end_ts: float = -1.0
    """End, or -1 if the audio ends within the segment."""
    text: str = ""


@dataclass(slots=True)
class WhisperWordTiming:
    """Word of a text, with its times in seconds."""

    word: str = ""
    """The word, with the space before it and the punctuation after it."""
    token_ids: list[int] = field(default_factory=list[int])
    start_ts: float = 0.0
    end_ts: float = 0.0


@dataclass(frozen=True, slots=True)
class WhisperDecodedResults:
    """Text of an audio."""

    texts: list[str]
    scores: list[float]
    language: str
    """Given or detected language, e.g. "en"."""
    chunks: list[WhisperDecodedResultChunk] | None = None
    """Segments; None without return_timestamps."""
    words: list[WhisperWordTiming] | None = None
    """Words; None without word_timestamps."""
    perf_metrics: WhisperPerfMetrics = field(default_factory=WhisperPerfMetrics, repr=False)

    def __str__(self) -> str:
        return self.texts[0]
