"""Plan of a prompt: programs and bytes of so many tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


class PlannedChunk(Protocol):
    """Tokens of a prompt that one prefill run reads."""

    @property
    def tokens(self) -> int:
        """Tokens that it reads."""
        ...

    @property
    def model(self) -> int:
        """Tokens that the prefill model takes."""
        ...


class PlannedVariant(Protocol):
    """A generate model, and how much of it a prompt and a response need."""

    @property
    def capacity(self) -> int:
        """Positions that it spans."""
        ...

    @property
    def chosen(self) -> bool:
        """True if it would run."""
        ...

    @property
    def utilisation(self) -> float:
        """Needed positions as a share of the capacity, at most 1."""
        ...

    @property
    def waste(self) -> float:
        """The rest: 1 - utilisation."""
        ...


class PromptPlan(Protocol):
    """Programs that a prompt of a new conversation would use, and the bytes of its K and V."""

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt."""
        ...

    @property
    def max_prompt_len(self) -> int:
        """Tokens of the longest prompt."""
        ...

    @property
    def min_response_len(self) -> int:
        """Tokens that can be generated after the longest prompt."""
        ...

    @property
    def capacity(self) -> int:
        """Rows of the cache."""
        ...

    @property
    def fits(self) -> bool:
        """True if the prompt can be read."""
        ...

    @property
    def reason(self) -> str:
        """Reason for the variant; if the prompt does not fit, the problem and remedy."""
        ...

    @property
    def chunks(self) -> Sequence[PlannedChunk]:
        """Prefill runs, in order."""
        ...

    @property
    def variants(self) -> Sequence[PlannedVariant]:
        """Generate models, ascending."""
        ...

    @property
    def needed(self) -> int:
        """Positions that the variant is chosen for."""
        ...

    @property
    def kv_bytes(self) -> int:
        """Bytes of a full cache."""
        ...

    @property
    def bytes_used(self) -> int:
        """Bytes of the prompt's rows."""
        ...

    @property
    def copy_bytes_here(self) -> int:
        """Bytes of the prompt's rows that are copied between the models."""
        ...

    @property
    def copy_bytes_npuw(self) -> int:
        """Bytes that the real NPUW copies between the models."""
        ...

    @property
    def static_models(self) -> int:
        """Number of programs."""
        ...


@runtime_checkable
class PlansPrompts(Protocol):
    """Ability of a compiled model: a view of what would run for a prompt."""

    def plan_prompt(
        self, tokens: int, max_prompt_len: int | None = None, min_response_len: int | None = None
    ) -> PromptPlan:
        """Plan a prompt of a new conversation.

        Args:
            tokens: tokens of the prompt.
            max_prompt_len: tokens of the longest prompt; None for the model's.
            min_response_len: tokens of the response after it; None for the model's.

        Raises:
            RuntimeError: a number is out of range; the message is for the user.
        """
        ...
