"""Lengths of prompts, chunks and caches.

Source: docs/reference/npuw.md#lengths.
"""

from __future__ import annotations

from dataclasses import dataclass

from npuw_layer.errors import OptionError
from npuw_layer.options.llm import PROMPT_GRAIN


@dataclass(frozen=True, slots=True)
class Lengths:
    """Token counts that determine all static models of an LLM."""

    max_prompt: int
    """Tokens of the longest prompt."""
    min_response: int
    """Tokens that can be generated after the longest prompt."""
    chunk: int | None
    """Tokens of one run of a chunked prefill; None if prompts are read whole."""

    @property
    def total(self) -> int:
        """Positions that attention spans at most."""
        return self.max_prompt + self.min_response

    @property
    def prefill_input(self) -> int:
        """Tokens of one run of the prefill model."""
        return self.chunk or self.max_prompt


GENERATION_GRAIN = 8
"""Generate steps of several tokens take a multiple of this number."""


def round_up(value: int, grain: int) -> int:
    """Return the next multiple of ``grain``."""
    return -(-value // grain) * grain


def round_generation_len(tokens: int) -> int:
    """Return the tokens of a generate step for NPUW_LLM_MAX_GENERATION_TOKEN_LEN."""
    return 1 if tokens == 1 else round_up(tokens, GENERATION_GRAIN)


def plan_lengths(max_prompt: int, min_response: int, chunk: int, dynamic: bool) -> Lengths:
    """Apply NPUW's rounding rules.

    Args:
        max_prompt: NPUW_LLM_MAX_PROMPT_LEN.
        min_response: NPUW_LLM_MIN_RESPONSE_LEN.
        chunk: NPUW_LLM_PREFILL_CHUNK_SIZE; 0 for prompts read whole.
        dynamic: whether NPUW_LLM_PREFILL_HINT is DYNAMIC.

    Raises:
        OptionError: prompts are chunked, and the chunk is not a power of two.
    """
    prompt = round_up(max_prompt, PROMPT_GRAIN)
    response = round_up(min_response, PROMPT_GRAIN)
    if not dynamic or not 0 < chunk < prompt:
        return Lengths(prompt, response, None)
    if chunk & (chunk - 1):
        raise OptionError(f"NPUW_LLM_PREFILL_CHUNK_SIZE is {chunk}; it must be a power of two")
    return Lengths(round_up(prompt, chunk), response, chunk)
