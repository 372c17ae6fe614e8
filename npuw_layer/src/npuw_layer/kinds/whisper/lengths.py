"""Lengths of prompts and caches of a Whisper decoder.

Source: docs/reference/npuw.md#whisper; NPUW's LLM compiled model sets the same options and lengths.
"""

from __future__ import annotations

from npuw_layer.errors import OptionError
from npuw_layer.kinds.whisper.options import WhisperOptions
from npuw_layer.llm.plan.lengths import Lengths
from npuw_layer.options import Options

MAX_PROMPT = 4
"""Tokens of a prompt: begin, language, task, and the choice of timestamps."""

KV_SIZE = 448
"""Number of positions of any Whisper model."""


def whisper_lengths(options: Options) -> Lengths:
    """Return the lengths of a decoder: all positions, of which the prompt takes a few.

    Raises:
        OptionError: the prompt would leave no position for an answer.
    """
    longest = KV_SIZE - 1
    prompt = MAX_PROMPT
    if "max_prompt_len" in options.model_fields_set:
        prompt = options.max_prompt_len
    if prompt > longest:
        raise OptionError(
            f"NPUW_LLM_MAX_PROMPT_LEN = {prompt}: a Whisper decoder has {KV_SIZE} positions; set "
            f"the length to at most {longest}"
        )
    if options.group(WhisperOptions).whisper_decompose_sdpa:
        prompt = longest
    return Lengths(prompt, KV_SIZE - prompt, None)
