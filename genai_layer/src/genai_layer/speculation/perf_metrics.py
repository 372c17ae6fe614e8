"""Times of the model and of its draft model, and numbers of candidates.

Source: SDPerfMetrics and SDPerModelsPerfMetrics of openvino_genai,
docs/reference/genai.md#speculative-decoding. Ours: without measurements all statistics are 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

from genai_layer.decoding.drafters import DraftModelDrafter
from genai_layer.decoding.reads import Drafter
from genai_layer.perf_metrics import MeanStdPair, PerfMetrics, RawPerfMetrics


@dataclass(slots=True)
class SDPerfMetrics(PerfMetrics):
    """Measurements of one of the models.

    ``m_durations`` has one entry per inference, the prompt's included, and ``m_batch_sizes`` the
    tokens that each resulted in. The time of tokens that are read again before a close choice
    belongs to the inference that makes the choice.
    """

    def get_ttft(self) -> MeanStdPair:
        """Duration of the first inference of each generation."""
        return MeanStdPair.of([steps[0][0] for steps in self._generations()])

    def get_ttst(self) -> MeanStdPair:
        """Duration of the second inference of each generation."""
        seconds = [steps[1][0] for steps in self._generations() if len(steps) > 1]
        return MeanStdPair.of(seconds)

    def get_latency(self) -> MeanStdPair:
        """Duration of an inference, from the third on."""
        later = [took for steps in self._generations() for took, _ in steps[2:]]
        return MeanStdPair.of(later)

    def get_tpot(self) -> MeanStdPair:
        """Time per token, from the third inference on."""
        each = [took / made for steps in self._generations() for took, made in steps[2:]]
        return MeanStdPair.of(each)

    def _generations(self) -> Iterator[Sequence[tuple[float, int]]]:
        """Yield durations and tokens of each generation's inferences."""
        raw, begin = self.raw_metrics, 0
        steps = list(zip(raw.m_durations, raw.m_batch_sizes, strict=True))
        for duration in raw.generate_durations:
            end, total = begin, 0.0
            while end < len(steps) and total < duration:
                total += steps[end][0]
                end += 1
            if end > begin:
                yield steps[begin:end]
            begin = end


@dataclass(slots=True)
class SDPerModelsPerfMetrics(PerfMetrics):
    """Measurements of a pipeline with a draft model."""

    main_model_metrics: SDPerfMetrics = field(default_factory=SDPerfMetrics)
    draft_model_metrics: SDPerfMetrics = field(default_factory=SDPerfMetrics)
    num_drafted: int = 0
    num_accepted: int = 0

    def get_ttst(self) -> MeanStdPair:
        """Return 0, as in openvino_genai: ``main_model_metrics`` has the time."""
        return MeanStdPair()

    def get_latency(self) -> MeanStdPair:
        """Return 0, as in openvino_genai: ``main_model_metrics`` has the time."""
        return MeanStdPair()

    def get_num_draft_tokens(self) -> int:
        """Number of candidates."""
        return self.num_drafted

    def get_num_accepted_tokens(self) -> int:
        """Number of candidates that the model chose, too."""
        return self.num_accepted

    def get_num_rejected_tokens(self) -> int:
        """Number of the other candidates."""
        return self.num_drafted - self.num_accepted

    def get_draft_acceptance_rate(self) -> float:
        """Share of accepted candidates."""
        return _ratio(self.num_accepted, self.num_drafted)

    def get_num_draft_processed_tokens(self) -> int:
        """Number of inferences of the draft model."""
        return self.draft_model_metrics.num_generated_tokens

    def get_draft_processed_to_candidate_ratio(self) -> float:
        """Inferences of the draft model per candidate."""
        return _ratio(self.get_num_draft_processed_tokens(), self.num_drafted)

    def get_draft_to_main_inference_duration_ratio(self) -> float:
        """Time of the draft model's inferences, divided by that of the model's."""
        draft, main = (
            sum(one.raw_metrics.inference_durations)
            for one in (self.draft_model_metrics, self.main_model_metrics)
        )
        return _ratio(draft, main)

    def __iadd__(self, other: PerfMetrics) -> Self:
        """Add the measurements of another generation of the same pipeline."""
        PerfMetrics.__iadd__(self, other)
        if isinstance(other, SDPerModelsPerfMetrics):
            self.main_model_metrics += other.main_model_metrics
            self.draft_model_metrics += other.draft_model_metrics
            self.num_drafted += other.num_drafted
            self.num_accepted += other.num_accepted
        return self


def metrics_of_models(
    metrics: PerfMetrics, used: Sequence[Drafter | None]
) -> SDPerModelsPerfMetrics | None:
    """Return the measurements of both models; None without a draft model.

    Args:
        metrics: those of the pipeline.
        used: drafters of the pipeline's generations.
    """
    drafters = [one for one in used if isinstance(one, DraftModelDrafter)]
    if not drafters:
        return None
    raw = metrics.raw_metrics
    main = SDPerfMetrics(
        num_generated_tokens=metrics.num_generated_tokens,
        raw_metrics=_by_inference(
            raw.token_infer_durations, raw.m_batch_sizes, sum(raw.inference_durations)
        ),
    )
    took = [each for one in drafters for each in one.raw.token_infer_durations]
    draft = SDPerfMetrics(
        num_generated_tokens=len(took),
        raw_metrics=_by_inference(took, [1] * len(took), sum(took)),
    )
    return SDPerModelsPerfMetrics(
        metrics.load_time,
        metrics.num_input_tokens,
        metrics.num_generated_tokens,
        raw,
        main_model_metrics=main,
        draft_model_metrics=draft,
        num_drafted=sum(one.count.drafted for one in drafters),
        num_accepted=sum(one.count.accepted for one in drafters),
    )


def _by_inference(
    durations: Sequence[float], tokens: Sequence[int], inferences: float
) -> RawPerfMetrics:
    return RawPerfMetrics(
        generate_durations=[sum(durations)] if durations else [],
        inference_durations=[inferences],
        m_durations=list(durations),
        m_batch_sizes=list(tokens),
    )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
