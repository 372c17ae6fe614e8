"""Limits of the tokens before and after a prompt."""

from __future__ import annotations

from genai_layer.decoding.generated_sequence import Limits
from genai_layer.errors import PromptError, PromptTooLong
from genai_layer.generation_config import UNSET, GenerationConfig
from genai_layer.npu import StaticLengths


def limits_of(
    ids: list[int], config: GenerationConfig, vocabulary: int, lengths: StaticLengths | None
) -> Limits:
    """Check a prompt, and return the limits of its generation.

    Args:
        ids: the prompt.
        config: parameters.
        vocabulary: number of tokens in the vocabulary.
        lengths: those of an NPU's programs; None if the runtime has no such limits.

    Raises:
        PromptError: the prompt is empty or too long, or has an unknown id.
        ConfigError: max_length leaves no room for a token.
    """
    if not ids:
        raise PromptError("the prompt is empty")
    wrong = [token for token in ids if not 0 <= token < vocabulary]
    if wrong:
        raise PromptError(f"token id {wrong[0]}: the vocabulary has {vocabulary} tokens")
    capacity = UNSET
    if lengths is not None:
        lengths.check_prompt(len(ids))
        capacity = lengths.room_after(len(ids))
        if capacity < 1:
            raise PromptTooLong(
                f"a prompt of {len(ids)} tokens leaves no room for an answer; raise "
                "MIN_RESPONSE_LEN"
            )
    return Limits(config.get_max_new_tokens(len(ids)), capacity)
