"""Results of ``VLMPipeline.generate``, and durations of generations with images.

Source: openvino_genai.VLMDecodedResults and VLMPerfMetrics,
docs/reference/genai.md#vision-language-models.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from genai_layer.perf_metrics import MeanStdPair, PerfMetrics
from genai_layer.results import DecodedResults
from genai_layer.tensor import Tensor


@dataclass(slots=True)
class VLMRawPerfMetrics:
    """Measurements in microseconds; each list has one entry per generation, or per image."""

    prepare_embeddings_durations: list[float] = field(default_factory=list[float])
    """Images, chat template, tokenization and embeddings."""
    vision_encoding_durations: list[float] = field(default_factory=list[float])
    audio_encoding_durations: list[float] = field(default_factory=list[float])
    """Empty, as no model reads audio."""
    text_embedding_durations: list[float] = field(default_factory=list[float])
    per_image_slice_counts: list[int] = field(default_factory=list[int])
    """1 for each image, which is encoded whole."""

    def __iadd__(self, other: VLMRawPerfMetrics) -> Self:
        for name in VLMRawPerfMetrics.__slots__:
            getattr(self, name).extend(getattr(other, name))
        return self


@dataclass(slots=True)
class VLMPerfMetrics(PerfMetrics):
    """Measurements of one generation with images, or the sum of several."""

    vlm_raw_metrics: VLMRawPerfMetrics = field(default_factory=VLMRawPerfMetrics)

    def get_prepare_embeddings_duration(self) -> MeanStdPair:
        """Time to prepare the prompt's embeddings, encoding included."""
        return MeanStdPair.of(self.vlm_raw_metrics.prepare_embeddings_durations)

    def get_vision_encoding_duration(self) -> MeanStdPair:
        """Time to encode images."""
        return MeanStdPair.of(self.vlm_raw_metrics.vision_encoding_durations)

    def get_audio_encoding_duration(self) -> MeanStdPair:
        """Time to encode audio, -1 as no model reads any."""
        return MeanStdPair.of(self.vlm_raw_metrics.audio_encoding_durations)

    def get_text_embedding_duration(self) -> MeanStdPair:
        """Time to look up the embeddings of the prompt's tokens."""
        return MeanStdPair.of(self.vlm_raw_metrics.text_embedding_durations)

    def get_total_image_slice_count(self) -> int:
        """Number of images in the prompts."""
        return sum(self.vlm_raw_metrics.per_image_slice_counts)

    def __iadd__(self, other: PerfMetrics) -> Self:
        """Add the measurements of another generation.

        Raises:
            GenAIUsageError: the other generation belongs to another pipeline.
        """
        PerfMetrics.__iadd__(self, other)
        if isinstance(other, VLMPerfMetrics):
            self.vlm_raw_metrics += other.vlm_raw_metrics
        return self


@dataclass(frozen=True, slots=True)
class VLMDecodedResults(DecodedResults):
    """Generated texts; ``str`` returns the text, or lines "score: text" of several."""

    perf_metrics: VLMPerfMetrics = field(default_factory=VLMPerfMetrics, repr=False)
    full_token_ids: list[list[int]] = field(default_factory=list[list[int]], repr=False)
    """Empty, as only models of speech have them."""
    intermediate_hidden_states: list[list[Tensor]] = field(
        default_factory=list[list[Tensor]], repr=False
    )
    """Empty, as only models of speech have them."""
