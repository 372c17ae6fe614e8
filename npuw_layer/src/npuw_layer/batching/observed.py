"""State of a batching at one moment: caches, conversations, memory, and the last step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from npuw_layer.batching.request import BatchedRequest


@dataclass(frozen=True, slots=True)
class KVShape:
    """Lengths of the static models, and the size of a cache, equal for all places."""

    capacity: int
    """Rows of a cache: the longest prompt and the response after it."""
    max_prompt: int
    min_response: int
    variants: Sequence[int]
    """Capacities of the generate models, ascending."""
    prefill_models: Sequence[int]
    """Tokens of the prefill models, ascending."""
    bytes_per_token: int
    layers: int
    """Layers that have K and V."""


@dataclass(frozen=True, slots=True)
class MemoryRange:
    """Memory of one purpose."""

    name: str
    kind: Literal["weights", "kv_cache", "prefix_cache", "programs", "adapters"]
    bytes: int
    address: int | None
    """Address on the device; None for host memory, for several ranges, or if unknown."""
    slot: int | None
    """Place of the conversation that owns the memory; None if all share it."""


@dataclass(frozen=True, slots=True)
class ObservedPlace:
    """A place and its conversation; all numbers are 0 if the place is free."""

    slot: int
    conversation: BatchedRequest | None = None
    phase: Literal["free", "prefilling", "generating"] = "free"
    prompt_tokens: int = 0
    """Tokens up to the end of the last prompt."""
    stored_tokens: int = 0
    """Rows in use; until the cache slides, the next token's row is the one after them."""
    cached_tokens: int = 0
    """Tokens of the prompt that came from the prefix cache."""
    variant: int | None = None
    """Capacity of the generate model that runs for the conversation; None before the first."""
    variant_reason: str | None = None
    mask_ones: int = 0
    """Stored rows that the mask shows to the next token."""
    copied_bytes: int = 0
    """Bytes of the prompt's rows that were copied after prefill computed them."""
    prefill_chunks: Sequence[int] = ()
    """Tokens of each chunk that was read."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """Counts of one step's work."""

    read: int = 0
    """Prompt tokens that the step read."""
    generated: int = 0
    """Conversations that generated: each ran one token."""
    slots: int = 0
    """Slots of the generate model that ran; 0 if none ran."""
    capacity: int = 0
    """Positions that the generate model's attention spans; 0 if conversations ran one by one."""
    programs: tuple[str, ...] = ()
    """Names of the static models that ran, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedStep(StepReport):
    """A step that ran programs."""

    number: int
    """Number of the step, from 1; steps without work are not counted."""
    host_ms: float
    """Time of the step on the host."""

    @property
    def read_tokens(self) -> int:
        """Prompt tokens that the step read."""
        return self.read

    @property
    def kind(self) -> Literal["prefill", "generate", "both"]:
        """Purpose of the programs."""
        if self.read_tokens and self.generated:
            return "both"
        return "prefill" if self.read_tokens else "generate"


@dataclass(frozen=True, slots=True)
class BatchingState:
    """State of a batching; a step in progress may already have changed some numbers."""

    kv: KVShape
    memory: Sequence[MemoryRange]
    places: Sequence[ObservedPlace]
    waiting: int
    """Conversations with tokens that wait for a place."""
    last_step: ObservedStep | None
    last_ended: ObservedPlace | None
    """Conversation that ended last, as it was then; None before, or if nobody observed it."""
