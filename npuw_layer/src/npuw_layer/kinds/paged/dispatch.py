"""Tables of one inference: the sequence of each token, and the blocks of each sequence.

Tables of S sequences, all i32, by the names of the model's inputs:

    past_lens              number of cached rows of each sequence, [S]
    subsequence_begins     begin of each sequence's new tokens, and end of the last, [S + 1]
    block_indices          the blocks of all sequences, concatenated
    block_indices_begins   begin of each sequence's blocks, and end of the last, [S + 1]
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compiler_layer.reference.ov.paged_attention import sequences_of
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import TensorError
from npuw_layer.kinds.paged.names import PAST_LENS, SUBSEQUENCE_BEGINS, TABLES


def checked_tables(
    given: Mapping[str, Array], tokens: int, blocks: int, block_rows: int
) -> dict[str, Array]:
    """Check a caller's tables; return them contiguous.

    Args:
        given: the tables by name.
        tokens: number of new tokens.
        blocks: smallest number of blocks of a cache.
        block_rows: rows of each block.

    Raises:
        TensorError: the tables do not fit together, or do not fit the tokens and blocks.
    """
    tables = {name: np.ascontiguousarray(given[name]) for name in TABLES}
    try:
        list(sequences_of(tokens, tuple(tables.values()), blocks, block_rows))
    except ValueError as error:
        raise TensorError(str(error)) from error
    return tables


def tables_of_range(tables: Mapping[str, Array], begin: int, end: int) -> dict[str, Array]:
    """Return the tables of a range of tokens, after the tokens before it were read.

    Sequences keep their blocks; those without a token in the range have no new tokens.
    """
    begins = tables[SUBSEQUENCE_BEGINS]
    within = np.clip(begins, begin, end)
    read = np.clip(begin, begins[:-1], begins[1:]) - begins[:-1]
    return {
        **tables,
        PAST_LENS: (tables[PAST_LENS] + read).astype(np.int32),
        SUBSEQUENCE_BEGINS: (within - begin).astype(np.int32),
    }
