"""What ``WhisperPipeline.generate`` gives.

Source: openvino_genai.WhisperDecodedResults.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from genai_layer.perf_metrics import PerfMetrics


@dataclass(frozen=True, slots=True)
class WhisperDecodedResultChunk:
    """A part of a text, and when it was spoken, in seconds."""

    start_ts: float
    end_ts: float
    """-1 if the audio ends in the middle of it."""
    text: str


@dataclass(frozen=True, slots=True)
class WhisperDecodedResults:
    """The text of some audio."""

    texts: list[str]
    scores: list[float]
    language: str
    """As it was said, or was heard: "en"."""
    chunks: list[WhisperDecodedResultChunk] | None = None
    """With return_timestamps alone."""
    perf_metrics: PerfMetrics = field(default_factory=PerfMetrics, repr=False)

    def __str__(self) -> str:
        return self.texts[0]
