"""Names of a language model's inputs and outputs, before and after the split."""

from __future__ import annotations

from collections.abc import Iterable

IDS, MASK, POSITIONS, BEAMS = "input_ids", "attention_mask", "position_ids", "beam_idx"
EMBEDS = "inputs_embeds"
"""What models that see take in the place of ids: embeddings f32 [1, n, width]."""
LAST_HIDDEN_STATE = "last_hidden_state"
"""f32 [1, n, width]: what some models give beside logits."""
LOGITS = "logits"

STORED_TOKENS = "npuw_stored_tokens_state"
"""The variable i64 [1]: how many tokens are stored; see ``continuation``."""

CACHE_POSITION = "cache_position"
"""The input i64 [1, tokens] of a static model: how many tokens precede each new one."""

LAST_TOKEN = "npuw_last_token"
"""The input f32 [1, 1, tokens] of a model that computes one token's logits: 1 at that token."""

VOCABULARY = "npuw_vocabulary_"
"""Begins the name of the input i64 [1] that no op reads: how many token ids there are ends it."""

EMBED = "npuw_output_embed"
"""What goes from a model without head to the head: hidden states f32 [1, tokens, channels]."""

_SLOT = "@slot"

_BLOCK = "_block_"

_TRANSPOSED = "@transposed"


def transposed_variable(name: str) -> str:
    """What a variable is called whose rows lie channel by channel, e.g. ``0.value@transposed``."""
    return name + _TRANSPOSED


def is_transposed(name: str) -> bool:
    """Whether a variable's rows lie channel by channel."""
    return _TRANSPOSED in name


def plain_variable(name: str) -> str:
    """What a variable is called wherever it does not matter how its rows lie."""
    return name.removesuffix(_TRANSPOSED)


def vocabulary_of(names: Iterable[str]) -> int | None:
    """Give how many token ids there are; None if inputs do not tell.

    Args:
        names: of a static model's inputs.
    """
    for name in names:
        begin, mark, count = name.partition(VOCABULARY)
        if mark and not begin and count.isdecimal():
            return int(count)
    return None


def slot_variable(name: str, slot: int) -> str:
    """What a variable is called in a model of several conversations, e.g. ``0.key@slot3``."""
    return f"{name}{_SLOT}{slot}"


def slot_of(name: str) -> tuple[str, int | None]:
    """The variable that a slot's is one of, and the slot; None if it belongs to no slot."""
    variable, mark, slot = name.rpartition(_SLOT)
    return (variable, int(slot)) if mark and slot.isdecimal() else (name, None)


def block_variable(name: str, block: int | None) -> str:
    """What a block of a variable is called: ``0.key_block_3``, or ``0.key_block_tail``.

    The tail is what is left of a past that is no multiple of blocks (fact sheet npuw §a.3).
    """
    return f"{name}{_BLOCK}{'tail' if block is None else block}"


def block_of(name: str) -> str | None:
    """The variable that a block is one of; None if it is none."""
    variable, mark, block = name.rpartition(_BLOCK)
    return variable if mark and (block.isdecimal() or block == "tail") else None
