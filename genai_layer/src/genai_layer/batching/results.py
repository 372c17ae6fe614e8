"""Results of ``ContinuousBatchingPipeline.generate``.

Source: openvino_genai.GenerationResult and EncodedGenerationResult,
docs/reference/genai.md#continuous-batching. Ours: metrics are those of the prompt alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest

from genai_layer.batching.request import GenerationStatus, Request
from genai_layer.perf_metrics import PerfMetrics
from genai_layer.results import GenerationFinishReason
from genai_layer.speculation.perf_metrics import SDPerModelsPerfMetrics
from genai_layer.vision.results import VLMDecodedResults, VLMPerfMetrics


@dataclass(slots=True)
class GenerationResult:
    """Texts of a prompt, highest score first."""

    m_request_id: int = 0
    """Number of the prompt in the call."""
    m_generation_ids: list[str] = field(default_factory=list[str])
    """The texts."""
    m_scores: list[float] = field(default_factory=list[float])
    m_status: GenerationStatus = GenerationStatus.RUNNING
    perf_metrics: PerfMetrics = field(default_factory=PerfMetrics)
    extended_perf_metrics: SDPerModelsPerfMetrics | None = None
    """Metrics of both models; None without a draft model."""

    def get_generation_ids(self) -> list[str]:
        """Return the texts."""
        return self.m_generation_ids

    def __repr__(self) -> str:
        scores = [f"{score:g}, " for score in self.m_scores]
        texts = zip_longest(scores, self.m_generation_ids, fillvalue="")
        lines = "".join(f"{{ {score}{text} }}\n" for score, text in texts)
        return f"<py_continuous_batching.GenerationResult {self.m_request_id}\n{lines}\n>"


@dataclass(slots=True)
class EncodedGenerationResult:
    """Tokens after a prompt of ids, highest score first."""

    m_request_id: int = 0
    """Number of the prompt in the call."""
    m_generation_ids: list[list[int]] = field(default_factory=list[list[int]])
    """Tokens of each sequence, the stop token included."""
    m_scores: list[float] = field(default_factory=list[float])
    finish_reasons: list[GenerationFinishReason] = field(
        default_factory=list[GenerationFinishReason]
    )
    perf_metrics: PerfMetrics = field(default_factory=PerfMetrics)
    extended_perf_metrics: SDPerModelsPerfMetrics | None = None
    """Metrics of both models; None without a draft model."""


def decoded_result(number: int, request: Request) -> GenerationResult:
    """Return the texts of a request that has ended.

    Args:
        number: number of the prompt in the call.
        request: the request.
    """
    return GenerationResult(
        number,
        [text.text for text in request.texts],
        [text.score for text in request.texts],
        request.stream.status,
        request.metrics,
        request.metrics.by_model,
    )


def visual_result(request: Request) -> VLMDecodedResults:
    """Return the texts of a request with images that has ended.

    Args:
        request: the request, whose metrics are VLMPerfMetrics.
    """
    assert isinstance(request.metrics, VLMPerfMetrics)  # else images are rejected
    return VLMDecodedResults(
        [text.text for text in request.texts],
        [text.score for text in request.texts],
        [text.finish_reason for text in request.texts],
        request.metrics,
        request.metrics.by_model,
    )


def encoded_result(number: int, request: Request) -> EncodedGenerationResult:
    """Return the tokens of a request that has ended; arguments as ``decoded_result``."""
    return EncodedGenerationResult(
        number,
        [[*text.echoed, *text.tokens] for text in request.texts],
        [text.score for text in request.texts],
        [text.finish_reason for text in request.texts],
        request.metrics,
        request.metrics.by_model,
    )
