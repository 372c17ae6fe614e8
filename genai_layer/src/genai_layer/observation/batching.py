"""State of a batching: caches, conversations, memory, and the last step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable


class KVShape(Protocol):
    """Lengths of the static models, and the size of a cache."""

    @property
    def capacity(self) -> int:
        """Rows of a cache: the longest prompt and the response after it."""
        ...

    @property
    def max_prompt(self) -> int:
        """Tokens of the longest prompt."""
        ...

    @property
    def min_response(self) -> int:
        """Tokens that can be generated after the longest prompt."""
        ...

    @property
    def variants(self) -> Sequence[int]:
        """Positions that the generate models span, ascending."""
        ...

    @property
    def prefill_models(self) -> Sequence[int]:
        """Tokens that the prefill models take, ascending."""
        ...

    @property
    def bytes_per_token(self) -> int:
        """Bytes of K and V of a token in all layers."""
        ...

    @property
    def layers(self) -> int:
        """Layers that have K and V."""
        ...


class MemoryRange(Protocol):
    """Memory of one purpose."""

    @property
    def name(self) -> str:
        """Name of the content."""
        ...

    @property
    def kind(self) -> Literal["weights", "kv_cache", "prefix_cache", "programs", "adapters"]:
        """Purpose."""
        ...

    @property
    def bytes(self) -> int:
        """Size."""
        ...

    @property
    def address(self) -> int | None:
        """Address on the device; None for host memory, or if unknown."""
        ...

    @property
    def slot(self) -> int | None:
        """Place that owns the memory; None if all share it."""
        ...


class ObservedPlace(Protocol):
    """Place of a conversation in a batching; numbers are 0 if the place is free."""

    @property
    def slot(self) -> int:
        """Number of the place."""
        ...

    @property
    def conversation(self) -> object | None:
        """Result of ``Batching.open`` that has the place."""
        ...

    @property
    def phase(self) -> Literal["free", "prefilling", "generating"]:
        """Phase of the conversation."""
        ...

    @property
    def prompt_tokens(self) -> int:
        """Tokens up to the end of the last prompt."""
        ...

    @property
    def stored_tokens(self) -> int:
        """Rows in use, which is where the next token's row is written."""
        ...

    @property
    def cached_tokens(self) -> int:
        """Tokens of the prompt that came from the prefix cache."""
        ...

    @property
    def variant(self) -> int | None:
        """Positions of the generate model; None before the first."""
        ...

    @property
    def variant_reason(self) -> str | None:
        """Reason for the variant, for users."""
        ...

    @property
    def mask_ones(self) -> int:
        """Stored rows that the mask shows to the next token."""
        ...

    @property
    def copied_bytes(self) -> int:
        """Bytes of the prompt's rows that were copied after prefill."""
        ...

    @property
    def prefill_chunks(self) -> Sequence[int]:
        """Tokens of each chunk that was read."""
        ...


class ObservedStep(Protocol):
    """A step of a batching that ran programs."""

    @property
    def number(self) -> int:
        """Number of the step, from 1."""
        ...

    @property
    def kind(self) -> Literal["prefill", "generate", "both"]:
        """Purpose of the programs."""
        ...

    @property
    def programs(self) -> Sequence[str]:
        """Names of the programs, in order."""
        ...

    @property
    def read_tokens(self) -> int:
        """Prompt tokens that the step read."""
        ...

    @property
    def generated(self) -> int:
        """Conversations of which the step ran one token."""
        ...

    @property
    def slots(self) -> int:
        """Slots of the generate model; 0 if none ran."""
        ...

    @property
    def capacity(self) -> int:
        """Positions of the generate model; 0 if conversations ran one by one."""
        ...

    @property
    def host_ms(self) -> float:
        """Time of the step on the host."""
        ...


class BatchingState(Protocol):
    """State of a batching."""

    @property
    def kv(self) -> KVShape:
        """Lengths and sizes, equal for all places."""
        ...

    @property
    def memory(self) -> Sequence[MemoryRange]:
        """Memory in use."""
        ...

    @property
    def places(self) -> Sequence[ObservedPlace]:
        """All places, free ones included."""
        ...

    @property
    def waiting(self) -> int:
        """Conversations with tokens that wait for a place."""
        ...

    @property
    def last_step(self) -> ObservedStep | None:
        """Last step that ran programs."""
        ...

    @property
    def last_ended(self) -> ObservedPlace | None:
        """Conversation that ended last, as it was then: it may have begun and ended unseen."""
        ...


@runtime_checkable
class ObservesBatching(Protocol):
    """Ability of a batching: a view of its state."""

    def observe(self) -> BatchingState:
        """Return the state; any thread may call this, and a step in progress goes on."""
        ...
