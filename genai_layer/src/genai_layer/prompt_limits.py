"""Limits of a prompt and its answer by the lengths of the runtime, and what happens beyond them.

Source: docs/reference/genai.md#lengths-on-npu. Ours: NPUW_LLM_ON_FULL.
"""

from __future__ import annotations

from genai_layer.decoding.generated_sequence import Limits
from genai_layer.decoding.truncation import Truncation
from genai_layer.errors import ConfigError, PromptError, PromptTooLong
from genai_layer.generation_config import UNSET, GenerationConfig
from genai_layer.npu import OnFull, StaticLengths
from genai_layer.prompt import Prompt
from genai_layer.tokenizer import Tokenizer


def texts_side_by_side(config: GenerationConfig) -> int:
    """Return the number of texts that are generated side by side after one prompt."""
    return config.num_beams if config.is_beam_search() else config.num_return_sequences


def check_length(text: str, tokenizer: Tokenizer, lengths: StaticLengths | None) -> None:
    """Reject a text that has too many tokens, however it is encoded, before it is encoded.

    A cache that truncates leaves out turns of the text first.

    Raises:
        PromptTooLong: the text is too long.
    """
    if lengths is None or lengths.on_full is not OnFull.ERROR:
        return
    if len(text) > lengths.max_prompt_len:
        least = tokenizer.vocabulary.least_tokens(text)
        lengths.check_prompt(least, f"{len(text)} characters, at least {least} tokens")


def fitted(prompt: Prompt, lengths: StaticLengths | None) -> Prompt:
    """Return a prompt without the turns that a cache that truncates has no room for.

    Raises:
        TemplateError: the chat template rejects the shorter chat.
    """
    if lengths is None or lengths.on_full is not OnFull.TRUNCATE:
        return prompt
    return prompt.within(lengths.longest_chat)


def truncation_of(
    prompt: Prompt, config: GenerationConfig, lengths: StaticLengths | None
) -> Truncation | None:
    """Return the rule for a full cache; None if the cache is not read again."""
    if lengths is None or lengths.on_full is not OnFull.TRUNCATE:
        return None
    if texts_side_by_side(config) > 1:
        return None
    return Truncation(prompt, lengths.longest_chat, lengths.capacity)


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
        ConfigError: max_length leaves no room for a token, or logit_bias has an unknown id.
    """
    if not ids:
        raise PromptError("the prompt is empty")
    wrong = [token for token in ids if not 0 <= token < vocabulary]
    if wrong:
        raise PromptError(f"token id {wrong[0]}: the vocabulary has {vocabulary} tokens")
    for token in config.logit_bias:
        if not 0 <= token < vocabulary:
            raise ConfigError(
                f"logit_bias: id {token}: the vocabulary has {vocabulary} tokens; remove the id"
            )
    capacity = UNSET
    if lengths is not None:
        lengths.check_prompt(len(ids))
        capacity = lengths.room_after(len(ids), texts_side_by_side(config))
        if capacity < 1:
            raise PromptTooLong(
                f"a prompt of {len(ids)} tokens leaves no room for an answer; raise "
                "MIN_RESPONSE_LEN"
            )
    return Limits(config.get_max_new_tokens(len(ids)), capacity)
