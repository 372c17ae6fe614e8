"""Results of ``WhisperPipeline.generate``.

Source: openvino_genai.WhisperDecodedResults.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from genai_layer.whisper.perf_metrics import WhisperPerfMetrics


@dataclass(frozen=True, slots=True)
class WhisperDecodedResultChunk:
    """Segment of a text, with its times in seconds."""

    start_ts: float
    end_ts: float
    """End, or -1 if the audio ends within the segment."""
    text: str


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
