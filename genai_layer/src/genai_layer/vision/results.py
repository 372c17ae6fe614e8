"""Results of ``VLMPipeline.generate``.

Source: openvino_genai.VLMDecodedResults.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from genai_layer.results import DecodedResults
from genai_layer.vision.perf_metrics import VLMPerfMetrics


@dataclass(frozen=True, slots=True)
class VLMDecodedResults(DecodedResults):
    """Generated texts; ``str`` returns the text, or lines "score: text" of several."""

    perf_metrics: VLMPerfMetrics = field(default_factory=VLMPerfMetrics, repr=False)


def with_vision_metrics(results: DecodedResults) -> VLMDecodedResults:
    """Return results whose metrics are VLMPerfMetrics as a VLMDecodedResults."""
    return VLMDecodedResults(**{each.name: getattr(results, each.name) for each in fields(results)})
