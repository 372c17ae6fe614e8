"""Sources of candidates of a pipeline; each makes a drafter for every generation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from genai_layer.decoding.candidate_count import CandidateCount
from genai_layer.decoding.draft_model_drafter import DraftModelDrafter
from genai_layer.decoding.language_model import LanguageModel
from genai_layer.decoding.prompt_lookup import PromptLookup
from genai_layer.decoding.task import Drafter
from genai_layer.generation_config import UNSET, GenerationConfig
from genai_layer.npu import StaticLengths
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.speculation.draft_model import OpenDraft

DEFAULT_CANDIDATES = 5
"""Candidates of a step unless num_assistant_tokens is set, as in openvino_genai."""

_BY_CONFIDENCE = 16
"""Maximum candidates of a step while their number depends on the draft's confidence."""


class Assistant(Protocol):
    """Source of candidates of a pipeline."""

    def drafter(self, prompt: Sequence[int], config: GenerationConfig) -> Drafter | None:
        """Return the drafter of a generation; None if its parameters request no candidates.

        Raises:
            PromptError: the prompt is too long for the draft model.
            RuntimeFailure: the runtime failed.
        """
        ...


def most_candidates(lengths: StaticLengths | None) -> int:
    """Return the number of candidates that the model verifies in one inference."""
    return UNSET if lengths is None else lengths.step - 1


class Lookup:
    """Prompt lookup.

    Args:
        lengths: lengths of the model on an NPU.
    """

    def __init__(self, lengths: StaticLengths | None) -> None:
        self._most = most_candidates(lengths)

    def drafter(self, prompt: Sequence[int], config: GenerationConfig) -> Drafter | None:
        """Return the drafter of a generation; None without max_ngram_size."""
        del prompt
        if not config.is_prompt_lookup():
            return None
        count = CandidateCount(config.num_assistant_tokens or 0, self._most)
        return PromptLookup(config.max_ngram_size, count)


class DraftAssistant:
    """Draft model.

    Args:
        draft: the open draft model.
        device: device of the pipeline's model.
        lengths: lengths of that model on an NPU.
        shared: True if generations run one after the other, so that one request serves all.
    """

    def __init__(
        self, draft: OpenDraft, device: str, lengths: StaticLengths | None, shared: bool
    ) -> None:
        self._draft = draft
        self._request = draft.new_request() if shared else None
        self._adapts = "NPU" in (device, draft.device)
        self._most = most_candidates(lengths)

    def drafter(self, prompt: Sequence[int], config: GenerationConfig) -> Drafter | None:
        """Return the drafter of a generation.

        Source: numbers of candidates, docs/reference/genai.md#speculative-decoding.
        """
        lengths, threshold = self._draft.lengths, config.assistant_confidence_threshold
        if lengths is not None:
            lengths.check_prompt(len(prompt))
        first = config.num_assistant_tokens or DEFAULT_CANDIDATES
        if threshold > 0:
            count = CandidateCount(_BY_CONFIDENCE, self._most)
        else:
            limit = min(2 * first, self._most)
            count = CandidateCount(first, limit, self._adapts)
        raw = RawPerfMetrics()
        return DraftModelDrafter(
            LanguageModel(self._request or self._draft.new_request(), raw),
            raw,
            count,
            room=UNSET if lengths is None else lengths.capacity,
            threshold=threshold,
            stops=frozenset(config.stop_token_ids),
        )
