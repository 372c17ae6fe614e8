"""Draft model or prompt lookup that a pipeline is created with.

Each of these sources of candidates makes a drafter for every generation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from genai_layer.decoding.drafters import CandidateCount, DraftModelDrafter, PromptLookup
from genai_layer.decoding.language_model import LanguageModel
from genai_layer.decoding.payoff import AlwaysPays, Payoff
from genai_layer.decoding.reads import Drafter
from genai_layer.errors import PropertyError
from genai_layer.generation_config import UNSET, GenerationConfig
from genai_layer.npu import OnFull, StaticLengths
from genai_layer.perf_metrics import RawPerfMetrics
from genai_layer.speculation.draft_model import DraftModel, OpenDraft, Place, open_draft

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


def payoff_of(lengths: StaticLengths | None) -> AlwaysPays:
    """Return the payoff of a pipeline's candidates: measured on an NPU, as its steps are static."""
    return AlwaysPays() if lengths is None else Payoff()


class Lookup:
    """Prompt lookup.

    Args:
        lengths: lengths of the model on an NPU.
    """

    def __init__(self, lengths: StaticLengths | None) -> None:
        self._most = most_candidates(lengths)
        self._payoff = payoff_of(lengths)

    def drafter(self, prompt: Sequence[int], config: GenerationConfig) -> Drafter | None:
        """Return the drafter of a generation; None without max_ngram_size."""
        del prompt
        if not config.is_prompt_lookup():
            return None
        first = config.num_assistant_tokens or 0
        count = CandidateCount(first, self._most, payoff=self._payoff)
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
        self._stored = draft.new_request() if shared else None
        self._adapts = "NPU" in (device, draft.device)
        self._most = most_candidates(lengths)
        self._payoff = payoff_of(lengths)

    def drafter(self, prompt: Sequence[int], config: GenerationConfig) -> Drafter | None:
        """Return the drafter of a generation.

        Source: numbers of candidates, docs/reference/genai.md#speculative-decoding.
        """
        lengths, threshold = self._draft.lengths, config.assistant_confidence_threshold
        if lengths is not None:
            lengths.check_prompt(len(prompt))
        first = config.num_assistant_tokens or DEFAULT_CANDIDATES
        if threshold > 0:
            count = CandidateCount(_BY_CONFIDENCE, self._most, payoff=self._payoff)
        else:
            limit = min(2 * first, self._most)
            count = CandidateCount(first, limit, self._adapts, self._payoff)
        raw = RawPerfMetrics()
        return DraftModelDrafter(
            LanguageModel(self._stored or self._draft.new_request(), raw),
            raw,
            count,
            room=UNSET if lengths is None else lengths.capacity,
            threshold=threshold,
            stops=frozenset(config.stop_token_ids),
        )


@dataclass(frozen=True, slots=True)
class Speculation:
    """Requested source of candidates; neither, or one of both."""

    draft: DraftModel | None
    looks_up: bool

    @staticmethod
    def taken(properties: dict[str, Any]) -> Speculation:
        """Remove the source of candidates from a pipeline's properties, and return it.

        Raises:
            PropertyError: a value has a wrong type, or both sources are given.
        """
        draft = properties.pop("draft_model", None)
        looks_up = properties.pop("prompt_lookup", False)
        if draft is not None and not isinstance(draft, DraftModel):
            raise PropertyError(f"draft_model = {draft!r}: must be the result of draft_model(…)")
        if not isinstance(looks_up, bool):
            raise PropertyError(f"prompt_lookup = {looks_up!r}: must be True or False")
        if draft is not None and looks_up:
            raise PropertyError("prompt_lookup and draft_model exclude each other; leave one out")
        return Speculation(draft, looks_up)

    def step_tokens(self, config: GenerationConfig) -> int:
        """Return the tokens that a generate step of an NPU should take.

        Source: docs/reference/genai.md#speculative-decoding. A draft's number of candidates grows
        up to twice the first one.
        """
        candidates = config.num_assistant_tokens or DEFAULT_CANDIDATES
        if self.draft is not None:
            return 2 * candidates + 1
        return candidates + 1 if self.looks_up else 1

    def exclude_draft(self, pipeline: str) -> None:
        """Reject a draft model for a kind of pipeline.

        Raises:
            PropertyError: a draft model is requested.
        """
        if self.draft is not None:
            raise PropertyError(
                f"draft_model: {pipeline} does not support it; leave it out, or set prompt_lookup"
            )

    def exclude_images(self) -> None:
        """Reject candidates for continuous batching of a model of images.

        Raises:
            PropertyError: the pipeline has a source of candidates.
        """
        if self.name:
            raise PropertyError(
                f"{self.name}: not supported with images in continuous batching; leave it out"
            )

    def check_source(self, imported: bool) -> None:
        """Reject candidates for a compiled model from a blob.

        Args:
            imported: whether the compiled model comes from a blob.

        Raises:
            PropertyError: the pipeline has a source of candidates.
        """
        if imported and self.name:
            raise PropertyError(
                f"{self.name}: the blob of BLOB_PATH may have no steps of several tokens; compile "
                "the model instead, and set CACHE_DIR to start fast"
            )

    def open(
        self, place: Place, lengths: StaticLengths | None, shared: bool = True
    ) -> Assistant | None:
        """Return the source of candidates of a pipeline.

        Args:
            place: surroundings of the pipeline.
            lengths: lengths of the model on an NPU.
            shared: whether generations run one after the other.

        Raises:
            ModelError, PropertyError, RuntimeFailure: see ``open_draft``; or the model forgets
                tokens.
        """
        name = self.name
        if name and lengths is not None and lengths.on_full is not OnFull.ERROR:
            raise PropertyError(
                f"{name}: NPUW_LLM_ON_FULL = {lengths.on_full}: forgotten tokens do not return "
                f"when candidates are rejected; set it to ERROR, or leave {name} out"
            )
        if self.looks_up:
            return Lookup(lengths)
        if self.draft is None:
            return None
        return DraftAssistant(open_draft(self.draft, place), place.device, lengths, shared)

    @property
    def name(self) -> str:
        """Name of the source's property; empty without a source."""
        return "prompt_lookup" if self.looks_up else "draft_model" if self.draft else ""
