"""Names and roles of the inputs of models with paged attention, as OpenVINO names them."""

from __future__ import annotations

from enum import Enum, auto

OPTION = "NPUW_PA"

VARIANT = "tokens"
"""Name of variants, before the number of their tokens."""

TAG = "pa"
"""Tag of attention parts, the same as NPUW's."""

SAMPLED_TAG = "sampled"
"""Tag of parts that select the rows of sampled tokens."""

PAST_LENS = "past_lens"
SUBSEQUENCE_BEGINS = "subsequence_begins"
BLOCK_INDICES = "block_indices"
BLOCK_INDICES_BEGINS = "block_indices_begins"
TABLES = (PAST_LENS, SUBSEQUENCE_BEGINS, BLOCK_INDICES, BLOCK_INDICES_BEGINS)
"""Tables of sequences and blocks, i32, in the order of the op's operands."""

MAX_CONTEXT_LEN = "max_context_len"
SAMPLED = "sampled_tokens_indices"
_CACHES = ("key_cache.", "value_cache.")


class Role(Enum):
    """The role of an input."""

    TOKENS = auto()
    """One row per token: ids, positions, embeddings."""
    SAMPLED = auto()
    """Indices of the tokens whose outputs are computed; without the input, all tokens."""
    TABLE = auto()
    CONTEXT = auto()
    """Rows of the longest sequence; the tables determine the number."""
    CACHE = auto()


def role_of(name: str) -> Role:
    """Return the role of an input."""
    if name.startswith(_CACHES):
        return Role.CACHE
    if name in TABLES:
        return Role.TABLE
    return {MAX_CONTEXT_LEN: Role.CONTEXT, SAMPLED: Role.SAMPLED}.get(name, Role.TOKENS)
