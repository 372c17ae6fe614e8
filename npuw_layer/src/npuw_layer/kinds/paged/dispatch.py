"""Tables of one inference: the sequence of each token, and the blocks of each sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from compiler_layer.reference.ov.paged_attention import sequences_of
from npuw_layer.backends.protocols import Array
from npuw_layer.errors import TensorError
from npuw_layer.kinds.paged.names import TABLES


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Tables of S sequences, all i32.

    Attributes:
        past_lens: number of cached rows of each sequence, [S].
        subsequence_begins: begin of each sequence's new tokens, and end of the last, [S + 1].
        block_indices: the blocks of all sequences, concatenated.
        block_indices_begins: begin of each sequence's blocks, and end of the last, [S + 1].
    """

    past_lens: Array
    subsequence_begins: Array
    block_indices: Array
    block_indices_begins: Array

    @classmethod
    def checked(cls, given: Mapping[str, Array], tokens: int, blocks: int, block_rows: int) -> Self:
        """Check a caller's tables.

        Args:
            given: the tables by name.
            tokens: number of new tokens.
            blocks: smallest number of blocks of a cache.
            block_rows: rows of each block.

        Raises:
            TensorError: the tables do not fit together, or do not fit the tokens and blocks.
        """
        tables = tuple(np.ascontiguousarray(given[name]) for name in TABLES)
        try:
            list(sequences_of(tokens, tables, blocks, block_rows))
        except ValueError as error:
            raise TensorError(str(error)) from error
        return cls(*tables)

    @property
    def tables(self) -> dict[str, Array]:
        """The tables by the names of the model's inputs."""
        every = (
            *(self.past_lens, self.subsequence_begins),
            *(self.block_indices, self.block_indices_begins),
        )
        return dict(zip(TABLES, every, strict=True))

    def part(self, begin: int, end: int) -> Dispatch:
        """Return the tables of a range of tokens, after the tokens before it were read.

        Sequences keep their blocks; those without a token in the range have no new tokens.
        """
        begins = self.subsequence_begins
        within = np.clip(begins, begin, end)
        read = np.clip(begin, begins[:-1], begins[1:]) - begins[:-1]
        return Dispatch(
            (self.past_lens + read).astype(np.int32),
            (within - begin).astype(np.int32),
            self.block_indices,
            self.block_indices_begins,
        )
