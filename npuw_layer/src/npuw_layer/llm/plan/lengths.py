"""How long prompts, chunks and caches are.

Source: fact sheet npuw §a.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from npuw_layer.errors import OptionError
from npuw_layer.options.llm import PROMPT_GRAIN


@dataclass(frozen=True, slots=True)
class Lengths:
    """Token counts that all static models of an LLM follow from."""

    max_prompt: int
    """The longest prompt."""
    min_response: int
    """What can be generated after the longest prompt."""
    chunk: int | None
    """Tokens that one run of a chunked prefill takes; None if a prompt is taken whole."""

    @property
    def total(self) -> int:
        """Positions that attention spans at the end."""
        return self.max_prompt + self.min_response

    @property
    def prefill_input(self) -> int:
        """Tokens that the prefill model takes at a time."""
        return self.chunk or self.max_prompt

    @property
    def prefill_past(self) -> int:
        """Rows of the cache that the prefill model reads."""
        return self.max_prompt - self.chunk if self.chunk else 0


GENERATION_GRAIN = 8
"""So are tokens of a generate step, if there is more than one."""


def round_up(value: int, grain: int) -> int:
    """The next multiple."""
    return -(-value // grain) * grain


def round_generation_len(tokens: int) -> int:
    """Tokens that a generate model takes at a time, for NPUW_LLM_MAX_GENERATION_TOKEN_LEN."""
    return 1 if tokens == 1 else round_up(tokens, GENERATION_GRAIN)


def plan_lengths(max_prompt: int, min_response: int, chunk: int, dynamic: bool) -> Lengths:
    """Apply the original's rounding rules.

    Args:
        max_prompt: NPUW_LLM_MAX_PROMPT_LEN.
        min_response: NPUW_LLM_MIN_RESPONSE_LEN.
        chunk: NPUW_LLM_PREFILL_CHUNK_SIZE; 0 takes prompts whole.
        dynamic: whether NPUW_LLM_PREFILL_HINT is DYNAMIC.

    Raises:
        OptionError: the chunk is needed and no power of two.
    """
    prompt = round_up(max_prompt, PROMPT_GRAIN)
    response = round_up(min_response, PROMPT_GRAIN)
    if not dynamic or not 0 < chunk < prompt:
        return Lengths(prompt, response, None)
    if chunk & (chunk - 1):
        raise OptionError(f"NPUW_LLM_PREFILL_CHUNK_SIZE is {chunk}; it must be a power of two")
    return Lengths(round_up(prompt, chunk), response, chunk)
