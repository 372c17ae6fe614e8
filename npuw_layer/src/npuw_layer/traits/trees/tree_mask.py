"""What is added to the scores of new tokens: as the caller says it, and in a static model's input.

The caller's [1, 1, rows, columns] ends with the last new token, both ways, and what it leaves out
is 0: openvino_genai gives the square of the candidates, [1, 1, n, n], or with what is stored before
them, [1, 1, n, stored + n]; a prompt has [1, 1, 1, 1]. In a static model tokens are aligned to the
left, and new ones stand behind the whole past, so the columns part there.

Source: NPUW's Eagle 3 extension, which aligns all of it to the right, as it does new tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import TensorError
from npuw_layer.llm.request.new_tokens import NewTokens
from npuw_layer.traits.trees.names import TREE_MASK

_LOWEST = {"f32": -1e30, "f16": -65504.0}
"""What takes the place of minus infinity: no score counts beside it, and where all positions of a
tile are forbidden it makes no NaN."""

ELEMENTS = tuple(_LOWEST)
"""What it may be of."""


def tree_shape(tokens: int, past: int) -> tuple[int, ...]:
    """That of the input of a static model: a row for each new token, a column for each row of K."""
    return (1, 1, tokens, past + tokens)


@dataclass(frozen=True, slots=True)
class TreeMask:
    """The input as the caller sets it."""

    element: str
    name: str = TREE_MASK
    per_token: bool = False

    @property
    def described(self) -> str:
        """Its type and shape, for people."""
        return f"{self.element} [1, 1, tokens, positions]"

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether a shape is that of one sequence's mask."""
        return len(shape) == 4 and tuple(shape[:2]) == (1, 1) and 0 not in shape

    def rows(self, values: Array) -> Array:
        """The mask of one sequence, [rows, columns]; a view."""
        return values[0, 0]

    def whole(self, values: Array, new: int, positions: int) -> Array | None:
        """Say what is added to the score of each new token at each position.

        Args:
            values: [rows, columns], which end with the last new token.
            new: tokens.
            positions: those that are stored, and the new ones.

        Returns:
            Finite numbers [new, positions]; None if nothing is added to what a token attends to
            anyway, itself and all before it.

        Raises:
            TensorError: there are more rows or columns, or one is no number.
        """
        rows, columns = values.shape
        if rows > new or columns > positions:
            raise TensorError(
                f"{TREE_MASK} has {rows} rows and {columns} columns for {new} new tokens among "
                f"{positions} positions; give as many, or fewer that end with the last token"
            )
        if np.isnan(values).any():
            raise TensorError(f"{TREE_MASK} has values that are no numbers (NaN)")
        if not np.tril(values, columns - rows).any():
            return None
        found = np.zeros((new, positions), values.dtype)
        found[new - rows :, positions - columns :] = values
        lowest = _LOWEST[self.element]
        return np.clip(found, lowest, -lowest, out=found)


def fill(target: Array, tree: Array | None, past: int) -> None:
    """Set a static model's input.

    Args:
        target: [1, 1, tokens, past + tokens].
        tree: [new, stored + new], or None if nothing is added.
        past: rows that the model reads.
    """
    target[...] = 0
    if tree is not None:
        new, positions = tree.shape
        stored = positions - new
        target[0, 0, :new, :stored] = tree[:, :stored]
        target[0, 0, :new, past : past + new] = tree[:, stored:]


def check_read_in_order(tokens: NewTokens, most: int) -> None:
    """Refuse a tree in a prompt, whose tokens all see those before them.

    Args:
        tokens: of a prompt.
        most: tokens of a step.

    Raises:
        TensorError: they are candidates.
    """
    if TREE_MASK in tokens.pairs:
        raise TensorError(
            f"{TREE_MASK}: {len(tokens)} tokens are read as a prompt, each of which sees all "
            f"before it; candidates come behind stored tokens, at most {most} at once "
            "(NPUW_LLM_MAX_GENERATION_TOKEN_LEN)"
        )
