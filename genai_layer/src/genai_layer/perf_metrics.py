"""Durations of generations.

Source: openvino_genai.PerfMetrics, docs/reference/genai.md#performance-metrics. Ours: without
measurements all statistics are 0, never negative.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from genai_layer.errors import GenAIUsageError

if TYPE_CHECKING:
    from genai_layer.speculation.perf_metrics import SDPerModelsPerfMetrics

_US_PER_MS = 1000.0


@dataclass(frozen=True, slots=True)
class MeanStdPair:
    """Mean and population standard deviation."""

    mean: float = 0.0
    std: float = 0.0

    def __iter__(self) -> Iterator[float]:
        return iter((self.mean, self.std))

    @staticmethod
    def of(values: Sequence[float]) -> MeanStdPair:
        """Summarise microseconds in milliseconds; both are -1 without values."""
        if not values:
            return MeanStdPair(-1, -1)
        scaled = np.asarray(values, float) / _US_PER_MS
        return MeanStdPair(float(scaled.mean()), float(scaled.std()))


@dataclass(frozen=True, slots=True)
class SummaryStats:
    """Mean, population standard deviation and limits."""

    mean: float = 0.0
    std: float = 0.0
    min: float = 0.0
    max: float = 0.0

    def as_tuple(self) -> tuple[float, float, float, float]:
        """Return the four values in this order."""
        return self.mean, self.std, self.min, self.max

    @staticmethod
    def of(values: Sequence[float]) -> SummaryStats:
        """Summarise microseconds in milliseconds; all are -1 without values."""
        if not values:
            return SummaryStats(-1, -1, -1, -1)
        mean, std = MeanStdPair.of(values)
        return SummaryStats(mean, std, min(values) / _US_PER_MS, max(values) / _US_PER_MS)


@dataclass(slots=True)
class RawPerfMetrics:
    """Measurements in microseconds; each list has one entry per generation or per token."""

    generate_durations: list[float] = field(default_factory=list[float])
    tokenization_durations: list[float] = field(default_factory=list[float])
    detokenization_durations: list[float] = field(default_factory=list[float])
    chat_template_durations: list[float] = field(default_factory=list[float])
    inference_durations: list[float] = field(default_factory=list[float])
    sampling_durations: list[float] = field(default_factory=list[float])
    """One entry per token."""
    token_infer_durations: list[float] = field(default_factory=list[float])
    """One entry per inference that results in tokens, with those before it that result in none; the
    first is the prompt's."""
    m_times_to_first_token: list[float] = field(default_factory=list[float])
    m_durations: list[float] = field(default_factory=list[float])
    """Times between successive tokens."""
    m_new_token_times: list[float] = field(default_factory=list[float])
    """Times at which tokens were ready, in milliseconds of a monotonic clock. A sum of metrics
    has those of the first operand, as in openvino_genai."""
    m_batch_sizes: list[int] = field(default_factory=list[int])
    """Tokens computed together: 1 each, unless there are several sequences or candidates."""
    grammar_compile_times: list[float] = field(default_factory=list[float])
    """One entry per grammar of structured output."""

    def join(self, other: RawPerfMetrics) -> None:
        """Add the measurements of another prompt of the same call of ``generate``."""
        for name in set(RawPerfMetrics.__slots__) - {"generate_durations"}:
            getattr(self, name).extend(getattr(other, name))

    def __iadd__(self, other: RawPerfMetrics) -> Self:
        for name in set(RawPerfMetrics.__slots__) - {"m_new_token_times"}:
            getattr(self, name).extend(getattr(other, name))
        return self


@dataclass(slots=True)
class PerfMetrics:
    """Measurements of one generation, or the sum of several; getters return milliseconds."""

    load_time: float = 0.0
    num_input_tokens: int = 0
    num_generated_tokens: int = 0
    raw_metrics: RawPerfMetrics = field(default_factory=RawPerfMetrics)
    grammar_compiler_init_times: dict[str, float] = field(default_factory=dict[str, float])
    """Times to load the grammar compilers that were used, in milliseconds."""
    by_model: SDPerModelsPerfMetrics | None = field(default=None, repr=False)
    """Metrics of both models of this generation; None without a draft model."""

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
        return MeanStdPair.of(self.raw_metrics.m_times_to_first_token)

    def get_tpot(self) -> MeanStdPair:
        """Time per token after the first."""
        return MeanStdPair.of(self.raw_metrics.m_durations)

    def get_ipot(self) -> MeanStdPair:
        """Inference time per token."""
        return MeanStdPair.of(self.raw_metrics.token_infer_durations)

    def get_throughput(self) -> MeanStdPair:
        """Tokens per second after the first token; 0 if there are none."""
        mean, std = self.get_tpot()
        if mean <= 0:
            return MeanStdPair()
        return MeanStdPair(1000.0 / mean, std * 1000.0 / mean**2)

    def get_generate_duration(self) -> MeanStdPair:
        """Time of ``generate``, from text to text."""
        return MeanStdPair.of(self.raw_metrics.generate_durations)

    def get_inference_duration(self) -> MeanStdPair:
        """Time in the runtime, per generation."""
        return MeanStdPair.of(self.raw_metrics.inference_durations)

    def get_sampling_duration(self) -> MeanStdPair:
        """Time in sampling, per token."""
        return MeanStdPair.of(self.raw_metrics.sampling_durations)

    def get_tokenization_duration(self) -> MeanStdPair:
        """Time to encode a prompt."""
        return MeanStdPair.of(self.raw_metrics.tokenization_durations)

    def get_detokenization_duration(self) -> MeanStdPair:
        """Time to decode, per generation."""
        return MeanStdPair.of(self.raw_metrics.detokenization_durations)

    def get_chat_template_duration(self) -> MeanStdPair:
        """Time to apply the chat template."""
        return MeanStdPair.of(self.raw_metrics.chat_template_durations)

    def get_grammar_compile_time(self) -> SummaryStats:
        """Time to compile a grammar of structured output."""
        return SummaryStats.of(self.raw_metrics.grammar_compile_times)

    def get_grammar_compiler_init_times(self) -> dict[str, float]:
        """Times to load the grammar compilers that were used, by name."""
        return dict(self.grammar_compiler_init_times)

    def __iadd__(self, other: PerfMetrics) -> Self:
        """Add the measurements of another generation.

        Raises:
            GenAIUsageError: the other generation belongs to another pipeline.
            TypeError: the other value has no metrics.
        """
        if not isinstance(other, PerfMetrics):  # pyright: ignore[reportUnnecessaryIsInstance] (users err)
            raise TypeError(f"metrics and {other!r} cannot be added; add metrics of a generation")
        if self.load_time != other.load_time:
            raise GenAIUsageError(
                f"metrics with load times of {self.load_time:.0f} and {other.load_time:.0f} ms "
                "belong to different pipelines; add those of one pipeline"
            )
        self.num_input_tokens += other.num_input_tokens
        self.num_generated_tokens += other.num_generated_tokens
        self.raw_metrics += other.raw_metrics
        self.grammar_compiler_init_times |= other.grammar_compiler_init_times
        return self

    def __add__(self, other: PerfMetrics) -> PerfMetrics:
        total = deepcopy(self)
        total += other
        return total
