"""Roles of the inputs of a model with paged attention; its transformation names them."""

from __future__ import annotations

from enum import Enum, auto

OPTION = "NPUW_PA"

VARIANT = "tokens"
"""What variants are called, with the number of their tokens."""

TAG = "pa"
"""Of the parts of a model that are attention; the original's, too."""

SAMPLED_TAG = "sampled"
"""Of what picks the rows of sampled tokens."""

PAST_LENS = "past_lens"
SUBSEQUENCE_BEGINS = "subsequence_begins"
BLOCK_INDICES = "block_indices"
BLOCK_INDICES_BEGINS = "block_indices_begins"
TABLES = (PAST_LENS, SUBSEQUENCE_BEGINS, BLOCK_INDICES, BLOCK_INDICES_BEGINS)
"""Which rows are whose, and where they lie; i32, in the order of the op's operands."""

MAX_CONTEXT_LEN = "max_context_len"
SAMPLED = "sampled_tokens_indices"
_CACHES = ("key_cache.", "value_cache.")


class Role(Enum):
    """What an input is for."""

    TOKENS = auto()
    """A row for each token: ids, positions, embeddings."""
    SAMPLED = auto()
    """The numbers of the tokens that outputs are wanted for; without it they are for all."""
    TABLE = auto()
    CONTEXT = auto()
    """How many rows the longest sequence has; it follows from the tables."""
    CACHE = auto()


def role_of(name: str) -> Role:
    """Tell what an input is for."""
    if name.startswith(_CACHES):
        return Role.CACHE
    if name in TABLES:
        return Role.TABLE
    return {MAX_CONTEXT_LEN: Role.CONTEXT, SAMPLED: Role.SAMPLED}.get(name, Role.TOKENS)
