"""Sequences with paged K and V: model inputs for steps of several sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

VOCABULARY = 1024
BLOCK = 32
BLOCKS = 9

Step = Sequence[tuple[int, int]]
"""Pairs in order: a sequence, and its number of new tokens."""

TABLES: Mapping[int, Sequence[int]] = {0: (5, 2, 8, 4), 1: (7, 0), 2: (3, 1, 6)}
"""Block tables of three sequences, out of order."""

STEPS: Sequence[Step] = (
    ((0, 40), (1, 5)),
    ((0, 1), (2, 33), (1, 1)),
    ((1, 1), (0, 70), (2, 1)),
    ((2, 1), (1, 1), (0, 1)),
    ((1, 1),),
)
"""Prompts mixed with single tokens; sequence 0 becomes longer than any window."""


@dataclass
class Sequences:
    """Token ids of the sequences so far, and the sequences' block tables."""

    tables: Mapping[int, Sequence[int]] = field(default_factory=lambda: TABLES)
    seed: int = 0
    ids: dict[int, list[int]] = field(default_factory=dict[int, list[int]])

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def inputs(self, step: Step) -> dict[str, np.ndarray]:
        """Draw new tokens, and return the model's inputs except caches."""
        ids, positions, past, blocks = [], [], [], []
        for number, count in step:
            before = self.ids.setdefault(number, [])
            past.append(len(before))
            positions += range(len(before), len(before) + count)
            drawn = self._random.integers(3, VOCABULARY, count).tolist()
            before += drawn
            ids += drawn
            blocks.append(list(self.tables[number][: -(-len(before) // BLOCK)]))
        return {
            "input_ids": np.array(ids, np.int64),
            "position_ids": np.array(positions, np.int64),
            "past_lens": np.array(past, np.int32),
            "subsequence_begins": _begins([count for _, count in step]),
            "block_indices": np.array([each for own in blocks for each in own], np.int32),
            "block_indices_begins": _begins([len(own) for own in blocks]),
            "max_context_len": np.array(max(len(self.ids[each]) for each, _ in step), np.int32),
        }


def _begins(lengths: Sequence[int]) -> np.ndarray:
    return np.cumsum([0, *lengths]).astype(np.int32)


def last_tokens(step: Step) -> np.ndarray:
    """Return the indices of the last token of each sequence in a step."""
    return np.cumsum([count for _, count in step]) - 1


def caches(heads: int, width: int, layers: int, kind: type = np.float32) -> dict[str, np.ndarray]:
    """Create empty caches."""
    return {
        f"{which}_cache.{layer}": np.zeros((BLOCKS, heads, BLOCK, width), kind)
        for layer in range(layers)
        for which in ("key", "value")
    }
