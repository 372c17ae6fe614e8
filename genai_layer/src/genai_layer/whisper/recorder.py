"""Clock of one transcription."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

from genai_layer.whisper.perf_metrics import WhisperPerfMetrics

_MS, _US = 1e3, 1e6
"""Milliseconds and microseconds per second."""


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
        self._began = time.perf_counter()

    @contextmanager
    def measure(self, *durations: list[float]) -> Generator[None]:
        """Append the duration of a block, in microseconds, to each list."""
        began = time.perf_counter()
        yield
        took = (time.perf_counter() - began) * _US
        for each in durations:
            each.append(took)

    def note_token(self) -> None:
        """Note that a token is ready."""
        raw, now = self.raw, time.perf_counter()
        if raw.m_new_token_times:
            raw.m_durations.append((now * _MS - raw.m_new_token_times[-1]) * _US / _MS)
        else:
            raw.m_times_to_first_token.append((now - self._began) * _US)
        raw.m_new_token_times.append(now * _MS)
        raw.m_batch_sizes.append(1)

    def finish(self) -> None:
        """Add what is measured once per generation."""
        parts = self.speech.encode_inference_durations, self.raw.token_infer_durations
        self.raw.inference_durations.append(sum(map(sum, (*parts, self.detections))))
        self.raw.generate_durations.append((time.perf_counter() - self._began) * _US)
        self.speech.word_level_timestamps_processing_durations.append(sum(self.words))
