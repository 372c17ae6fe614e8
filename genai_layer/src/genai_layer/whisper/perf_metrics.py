"""Durations of transcriptions.

Source: openvino_genai.WhisperPerfMetrics, docs/reference/genai.md#speech-recognition.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from genai_layer.perf_metrics import MeanStdPair, PerfMetrics

_US_PER_MS = 1000.0


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
        return MeanStdPair.of(self.whisper_raw_metrics.features_extraction_durations, _US_PER_MS)

    def get_word_level_timestamps_processing_duration(self) -> MeanStdPair:
        """Time to find the timestamps of words."""
        durations = self.whisper_raw_metrics.word_level_timestamps_processing_durations
        return MeanStdPair.of(durations, _US_PER_MS)

    def get_encode_inference_duration(self) -> MeanStdPair:
        """Time of the encoder, per window."""
        return MeanStdPair.of(self.whisper_raw_metrics.encode_inference_durations, _US_PER_MS)

    def get_decode_inference_duration(self) -> MeanStdPair:
        """Time of the decoder, per token."""
        return MeanStdPair.of(self.whisper_raw_metrics.decode_inference_durations, _US_PER_MS)

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
