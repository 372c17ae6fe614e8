"""Durations of generations.

Source: openvino_genai.PerfMetrics, docs/reference/genai.md#performance-metrics. Ours: without
measurements the mean is 0, never a negative throughput.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np


@dataclass(frozen=True, slots=True)
class MeanStdPair:
    """Mean and population standard deviation; both are 0 without measurements."""

    mean: float
    std: float

    def __iter__(self) -> Iterator[float]:
        return iter((self.mean, self.std))

    @staticmethod
    def of(values: Sequence[float], unit: float = 1.0) -> MeanStdPair:
        """Summarise values, divided by ``unit``."""
        if not values:
            return MeanStdPair(0.0, 0.0)
        scaled = np.asarray(values, float) / unit
        return MeanStdPair(float(scaled.mean()), float(scaled.std()))


_US_PER_MS = 1000.0


@dataclass(slots=True)
class RawPerfMetrics:
    """Measurements in microseconds; each list has one entry per generation or per token."""

    generate_durations: list[float] = field(default_factory=list[float])
    tokenization_durations: list[float] = field(default_factory=list[float])
    detokenization_durations: list[float] = field(default_factory=list[float])
    chat_template_durations: list[float] = field(default_factory=list[float])
    inference_durations: list[float] = field(default_factory=list[float])
    sampling_durations: list[float] = field(default_factory=list[float])
    token_infer_durations: list[float] = field(default_factory=list[float])
    m_times_to_first_token: list[float] = field(default_factory=list[float])
    m_durations: list[float] = field(default_factory=list[float])

    def __iadd__(self, other: RawPerfMetrics) -> Self:
        for name in RawPerfMetrics.__slots__:
            getattr(self, name).extend(getattr(other, name))
        return self


@dataclass(slots=True)
class PerfMetrics:
    """Measurements of one generation, or the sum of several; getters return milliseconds."""

    load_time: float = 0.0
    num_input_tokens: int = 0
    num_generated_tokens: int = 0
    raw_metrics: RawPerfMetrics = field(default_factory=RawPerfMetrics)

    def get_load_time(self) -> float:
        """Time to load the pipeline."""
        return self.load_time

    def get_num_input_tokens(self) -> int:
        """Number of tokens in the prompts."""
        return self.num_input_tokens

    def get_num_generated_tokens(self) -> int:
        """Number of sampled tokens, stop tokens included."""
        return self.num_generated_tokens

    def get_ttft(self) -> MeanStdPair:
        """Time to the first token, tokenisation included."""
        return MeanStdPair.of(self.raw_metrics.m_times_to_first_token, _US_PER_MS)

    def get_tpot(self) -> MeanStdPair:
        """Time per token after the first."""
        return MeanStdPair.of(self.raw_metrics.m_durations, _US_PER_MS)

    def get_ipot(self) -> MeanStdPair:
        """Inference time per token."""
        return MeanStdPair.of(self.raw_metrics.token_infer_durations, _US_PER_MS)

    def get_throughput(self) -> MeanStdPair:
        """Tokens per second after the first token."""
        mean, std = self.get_tpot()
        if not mean:
            return MeanStdPair(0.0, 0.0)
        return MeanStdPair(1000.0 / mean, std * 1000.0 / mean**2)

    def get_generate_duration(self) -> MeanStdPair:
        """Time of ``generate``, from text to text."""
        return MeanStdPair.of(self.raw_metrics.generate_durations, _US_PER_MS)

    def get_inference_duration(self) -> MeanStdPair:
        """Time in the runtime, per generation."""
        return MeanStdPair.of(self.raw_metrics.inference_durations, _US_PER_MS)

    def get_sampling_duration(self) -> MeanStdPair:
        """Time in sampling, per generation."""
        return MeanStdPair.of(self.raw_metrics.sampling_durations, _US_PER_MS)

    def get_tokenization_duration(self) -> MeanStdPair:
        """Time to encode a prompt."""
        return MeanStdPair.of(self.raw_metrics.tokenization_durations, _US_PER_MS)

    def get_detokenization_duration(self) -> MeanStdPair:
        """Time to decode, per generation."""
        return MeanStdPair.of(self.raw_metrics.detokenization_durations, _US_PER_MS)

    def get_chat_template_duration(self) -> MeanStdPair:
        """Time to apply the chat template."""
        return MeanStdPair.of(self.raw_metrics.chat_template_durations, _US_PER_MS)

    def __iadd__(self, other: PerfMetrics) -> Self:
        self.num_input_tokens += other.num_input_tokens
        self.num_generated_tokens += other.num_generated_tokens
        self.raw_metrics += other.raw_metrics
        return self

    def __add__(self, other: PerfMetrics) -> PerfMetrics:
        total = PerfMetrics(self.load_time)
        total += self
        total += other
        return total
