"""The tables of one inference: which tokens are of which sequence, and where its rows lie."""

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
    """All i32.

    Attributes:
        past_lens: how many rows each of S sequences has already, [S].
        subsequence_begins: where its new tokens begin, and the last ones end, [S + 1].
        block_indices: the blocks of all sequences, one after another.
        block_indices_begins: where those of each begin, and the last ones end, [S + 1].
    """

    past_lens: Array
    subsequence_begins: Array
    block_indices: Array
    block_indices_begins: Array

    @classmethod
    def checked(cls, given: Mapping[str, Array], tokens: int, blocks: int, block_rows: int) -> Self:
        """Take what a caller gave.

        Args:
            given: the tables by name.
            tokens: how many are new.
            blocks: that each cache has at least.
            block_rows: rows of each of them.

        Raises:
            TensorError: the tables do not fit together, or to the tokens and blocks that there are.
        """
        tables = tuple(np.ascontiguousarray(given[name]) for name in TABLES)
        try:
            list(sequences_of(tokens, tables, blocks, block_rows))
        except ValueError as error:
            raise TensorError(str(error)) from error
        return cls(*tables)

    @property
    def tables(self) -> dict[str, Array]:
        """By the names of the model's inputs."""
        every = (
            *(self.past_lens, self.subsequence_begins),
            *(self.block_indices, self.block_indices_begins),
        )
        return dict(zip(TABLES, every, strict=True))

    def part(self, begin: int, end: int) -> Dispatch:
        """Give the tables of some of the tokens: what is before them was read already.

        Sequences keep their blocks; those without a token among these have none.
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
