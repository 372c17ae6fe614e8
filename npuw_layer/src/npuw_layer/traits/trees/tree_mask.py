"""Tree mask, which is added to the scores of new tokens, of the caller and of a static model.

The caller's mask [1, 1, rows, columns] ends with the last new token in both dimensions; missing
elements are 0. openvino_genai passes the square of the candidates, [1, 1, n, n], or also the stored
tokens, [1, 1, n, stored + n]; a prompt has [1, 1, 1, 1]. In a static model tokens are aligned to
the left, and new ones follow the whole past, so the columns are split there.

Source: NPUW's Eagle 3 extension, which aligns the mask to the right, as it does new tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import TensorError
from npuw_layer.traits.trees.names import TREE_MASK

_LOWEST = {"f32": -1e30, "f16": -65504.0}
"""Substitutes of minus infinity: other scores dominate them, and a tile without visible positions
yields no NaN."""

ELEMENTS = tuple(_LOWEST)
"""Element types of the mask."""


def tree_shape(tokens: int, past: int) -> tuple[int, ...]:
    """Return the shape in a static model: a row for each new token, a column for each row of K."""
    return (1, 1, tokens, past + tokens)


@dataclass(frozen=True, slots=True)
class TreeMask:
    """Tree mask in the form in which the caller sets it."""

    element: str
    name: str = TREE_MASK
    per_token: bool = False

    @property
    def described(self) -> str:
        """Type and shape, for messages."""
        return f"{self.element} [1, 1, tokens, positions]"

    def fits(self, shape: Sequence[int]) -> bool:
        """Return whether a shape is that of one sequence's mask."""
        return len(shape) == 4 and tuple(shape[:2]) == (1, 1) and 0 not in shape

    def rows(self, values: Array) -> Array:
        """Return the mask of one sequence, [rows, columns]; a view."""
        return values[0, 0]

    def whole(self, values: Array, new: int, positions: int) -> Array | None:
        """Return the summand for the score of each new token at each position.

        Args:
            values: [rows, columns], which end with the last new token.
            new: number of new tokens.
            positions: number of stored and new tokens.

        Returns:
            Finite numbers [new, positions]; None if they are 0 at all positions that a token
            attends to in any case: itself and all earlier ones.

        Raises:
            TensorError: there are more rows or columns, or a value is NaN.
        """
        rows, columns = values.shape
        if rows > new or columns > positions:
            raise TensorError(
                f"{TREE_MASK} has {rows} rows and {columns} columns for {new} new tokens among "
                f"{positions} positions; pass as many, or fewer that end with the last token"
            )
        if np.isnan(values).any():
            raise TensorError(f"{TREE_MASK} has NaN values")
        if not np.tril(values, columns - rows).any():
            return None
        found = np.zeros((new, positions), values.dtype)
        found[new - rows :, positions - columns :] = values
        lowest = _LOWEST[self.element]
        return np.clip(found, lowest, -lowest, out=found)


def fill(target: Array, tree: Array | None, past: int) -> None:
    """Fill a static model's tree mask.

    Args:
        target: [1, 1, tokens, past + tokens].
        tree: [new, stored + new], or None for zeros.
        past: rows that the model reads.
    """
    target[...] = 0
    if tree is not None:
        new, positions = tree.shape
        stored = positions - new
        target[0, 0, :new, :stored] = tree[:, :stored]
        target[0, 0, :new, past : past + new] = tree[:, stored:]
