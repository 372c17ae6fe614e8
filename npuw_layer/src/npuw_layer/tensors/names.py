"""Names of a language model's inputs and outputs, before and after the split."""

from __future__ import annotations

from collections.abc import Iterable

IDS, MASK, POSITIONS, BEAMS = "input_ids", "attention_mask", "position_ids", "beam_idx"
EMBEDS = "inputs_embeds"
"""Input of vision-language models in place of ids: embeddings f32 [1, n, width]."""
LAST_HIDDEN_STATE = "last_hidden_state"
"""Output f32 [1, n, width] of some models, in addition to logits."""
LOGITS = "logits"

STORED_TOKENS = "npuw_stored_tokens_state"
"""Variable i64 [1]: number of stored tokens; see ``continuation``."""

CACHE_POSITION = "cache_position"
"""Input i64 [1, tokens] of a static model: number of tokens before each new one."""

LAST_TOKEN = "npuw_last_token"
"""Input f32 [1, 1, tokens] of a model that computes one token's logits: 1 at that token."""

VOCABULARY = "npuw_vocabulary_"
"""Name prefix of an input i64 [1] that no op reads; the number of token ids follows."""

EMBED = "npuw_output_embed"
"""Hidden states f32 [1, tokens, channels] that a model without LM head passes to the LM head."""

SCALE_ELEMENT = "f16"
"""Element type of scales, even if activations are bf16, which has too few bits for scales."""

_SLOT = "@slot"

_BLOCK = "_block_"

_TRANSPOSED = "@transposed"


def transposed_variable(name: str) -> str:
    """Return the name of a variable stored channel by channel, e.g. ``0.value@transposed``."""
    return name + _TRANSPOSED


def is_transposed(name: str) -> bool:
    """Return whether a variable is stored channel by channel."""
    return _TRANSPOSED in name


def plain_variable(name: str) -> str:
    """Return a variable's name without the mark of its layout."""
    return name.removesuffix(_TRANSPOSED)


def vocabulary_of(names: Iterable[str]) -> int | None:
    """Return the number of token ids; None if no input's name contains it.

    Args:
        names: names of a static model's inputs.
    """
    for name in names:
        begin, mark, count = name.partition(VOCABULARY)
        if mark and not begin and count.isdecimal():
            return int(count)
    return None


def slot_variable(name: str, slot: int) -> str:
    """Return a variable's name in a model of several conversations, e.g. ``0.key@slot3``."""
    return f"{name}{_SLOT}{slot}"


def slot_of(name: str) -> tuple[str, int | None]:
    """Split a name into the variable and its slot; the slot is None without one."""
    variable, mark, slot = name.rpartition(_SLOT)
    return (variable, int(slot)) if mark and slot.isdecimal() else (name, None)


def block_variable(name: str, block: int | None) -> str:
    """Return the name of a variable's block: ``0.key_block_3``, or ``0.key_block_tail``.

    The tail is the rest of a past that is not a multiple of the block
    (docs/reference/npuw.md#block-inputs).
    """
    return f"{name}{_BLOCK}{'tail' if block is None else block}"


def block_of(name: str) -> str | None:
    """Return the variable of a block; None if the name is not a block's."""
    variable, mark, block = name.rpartition(_BLOCK)
    return variable if mark and (block.isdecimal() or block == "tail") else None
