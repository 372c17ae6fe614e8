"""Results of ``ASRPipeline.generate``.

Source: openvino_genai.ASRDecodedResults, docs/reference/genai.md#speech-recognition.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from genai_layer.whisper.perf_metrics import WhisperPerfMetrics, WhisperRawPerfMetrics
from genai_layer.whisper.results import WhisperDecodedResults

ASRRawPerfMetrics = WhisperRawPerfMetrics


@dataclass(slots=True)
class ASRPerfMetrics(WhisperPerfMetrics):
    """Measurements of one transcription, or the sum of several; getters return milliseconds."""

    @property
    def asr_raw_metrics(self) -> ASRRawPerfMetrics:
        """Measurements of speech recognition, in microseconds."""
        return self.whisper_raw_metrics


@dataclass(slots=True)
class ASRDecodedResultChunk:
    """Segment or word of a text, with its times in seconds."""

    start_ts: float = 0.0
    end_ts: float = 0.0
    """End, or -1 if the audio ends within the segment."""
    text: str = ""
    token_ids: list[int] = field(default_factory=list[int])
    """Tokens of a word; empty for a segment."""


@dataclass(frozen=True, slots=True)
class ASRDecodedResults:
    """Texts of audios, of which there is one."""

    texts: list[str]
    scores: list[float]
    languages: list[str]
    """Given or detected languages, e.g. "en"."""
    chunks: list[list[ASRDecodedResultChunk]] | None = None
    """Segments; None without return_timestamps."""
    words: list[list[ASRDecodedResultChunk]] | None = None
    """Words; None without word_timestamps."""
    perf_metrics: ASRPerfMetrics = field(default_factory=ASRPerfMetrics, repr=False)

    def __str__(self) -> str:
        return self.texts[0]

    @staticmethod
    def of(found: WhisperDecodedResults) -> ASRDecodedResults:
        """Return the results of a Whisper model in this form."""
        chunks, words, metrics = found.chunks, found.words, found.perf_metrics
        segments = [
            ASRDecodedResultChunk(each.start_ts, each.end_ts, each.text) for each in chunks or []
        ]
        timed = [
            ASRDecodedResultChunk(each.start_ts, each.end_ts, each.word, each.token_ids)
            for each in words or []
        ]
        return ASRDecodedResults(
            texts=found.texts,
            scores=found.scores,
            languages=[found.language],
            chunks=[segments] if segments else None,
            words=None if words is None else [timed],
            perf_metrics=ASRPerfMetrics(
                **{each.name: getattr(metrics, each.name) for each in fields(metrics)}
            ),
        )
