"""Results of ``WhisperPipeline.generate``.

Source: openvino_genai.WhisperDecodedResults.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from genai_layer.perf_metrics import PerfMetrics


@dataclass(frozen=True, slots=True)
class WhisperDecodedResultChunk:
    """Segment of a text, with its times in seconds."""

    start_ts: float
    end_ts: float
    """End, or -1 if the audio ends within the segment."""
    text: str


@dataclass(frozen=True, slots=True)
class WhisperDecodedResults:
    """Text of an audio."""

    texts: list[str]
    scores: list[float]
    language: str
    """Given or detected language, e.g. "en"."""
    chunks: list[WhisperDecodedResultChunk] | None = None
    """Segments; None without return_timestamps."""
    perf_metrics: PerfMetrics = field(default_factory=PerfMetrics, repr=False)

    def __str__(self) -> str:
        return self.texts[0]
