"""Plan of a prompt: programs and bytes of so many tokens."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class PlansPrompts(Protocol):
    """Ability of a compiled model: a view of what would run for a prompt."""

    def plan_prompt(
        self, tokens: int, max_prompt_len: int | None = None, min_response_len: int | None = None
    ) -> object:
        """Plan a prompt of a new conversation.

        Args:
            tokens: tokens of the prompt.
            max_prompt_len: tokens of the longest prompt; None for the model's.
            min_response_len: tokens of the response after it; None for the model's.

        Returns:
            The plan, with the attributes of ``serve.observe.schema.Plan``.

        Raises:
            RuntimeError: a number is out of range; the message is for the user.
        """
        ...
