"""The stateful model on the numpy interpreter: the reference for every conversation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.reference.interpreter import Interpreter

Rows = dict[str, np.ndarray]
"""K and V by variable, [1, heads, tokens, width]."""

Hidden = frozenset[int]
"""Earlier tokens that a token does not attend to, since their rows had been replaced."""


class Stateful:
    """A graph with a growing state.

    Args:
        folder: folder of the model.
    """

    def __init__(self, folder: Path) -> None:
        self._interpreter = Interpreter(read_folder(folder))
        self.vocabulary = 96

    def read(
        self, ids: Sequence[int], shown: Sequence[bool], hidden: Sequence[Hidden], first: int
    ) -> tuple[np.ndarray, Rows]:
        """Read a complete conversation in one part, or in as few as its hidden tokens allow.

        Args:
            ids: tokens of the conversation.
            shown: mask of the caller: whether other tokens attend to each token.
            hidden: additional tokens that each token does not attend to.
            first: first position.

        Returns:
            Logits of all tokens, f32 [n, V], and all rows.
        """
        self._interpreter.reset()
        logits: list[np.ndarray] = []
        for unseen, piece in groupby(range(len(ids)), key=lambda index: hidden[index]):
            numbers = [*piece]
            mask = np.array(shown[: numbers[-1] + 1], np.int64)
            mask[[*unseen]] = 0
            found = self._interpreter.run(
                {
                    "input_ids": np.array([[ids[index] for index in numbers]], np.int64),
                    "attention_mask": mask[None],
                    "position_ids": np.array([numbers], np.int64) + first,
                    "beam_idx": np.zeros(1, np.int32),
                }
            )
            logits.append(found["logits"][0])
        return np.concatenate(logits), dict(self._interpreter.variables)
