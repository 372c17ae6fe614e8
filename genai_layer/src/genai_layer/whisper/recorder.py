"""Clock of one transcription."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from genai_layer.decoding.stopwatch import Stopwatch, TokenTimes
from genai_layer.whisper.perf_metrics import WhisperPerfMetrics


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
