"""Features of images' tokens (DeepStack), spread to rows of all tokens.

The caller marks the new tokens that belong to images, and passes one row of features for each
marked token, in order. The host turns them into a row for every token, zero for text, so a prompt
may be cut anywhere, even within an image.

Source: openvino.genai's inputs embedder for Qwen 3 VL, and its pipeline, which without images
    passes one row of zeros and marks no token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npuw_layer.backends.protocols import Array
from npuw_layer.errors import TensorError
from npuw_layer.tensors.token_inputs import TokenInput
from npuw_layer.traits.images.names import VISUAL_EMBEDS, VISUAL_MASKS

MARKS = TokenInput(VISUAL_MASKS, "boolean")
"""Input of marks, true at tokens of images."""


@dataclass(frozen=True, slots=True)
class VisualRows:
    """Input of features in the caller's form, f32 [levels, tokens of images, width]."""

    levels: int
    """Number of layers that add features."""
    width: int
    name: str = VISUAL_EMBEDS
    element: str = "f32"
    per_token: bool = False

    @staticmethod
    def of(port: TokenInput) -> VisualRows:
        """Return the caller's input for a static model's input."""
        levels, width = port.each
        return VisualRows(levels, width)

    @property
    def described(self) -> str:
        """Type and shape, for messages."""
        return f"{self.element} [{self.levels}, tokens of images, {self.width}]"

    def fits(self, shape: Sequence[int]) -> bool:
        """Return whether values of a shape are those of some tokens."""
        return len(shape) == 3 and (shape[0], shape[2]) == (self.levels, self.width)

    def rows(self, values: Array) -> Array:
        """Return the values ordered by token, [tokens of images, levels, width]; a view."""
        return values.transpose(1, 0, 2)


def spread(marks: Array, rows: Array) -> Array:
    """Spread rows of marked tokens over all tokens.

    Args:
        marks: boolean [n], true at tokens of images.
        rows: rows of these tokens, [marked, levels, width]; any number if none is marked.

    Returns:
        [n, levels, width]: zeros at tokens of text.

    Raises:
        TensorError: the number of rows is not that of marked tokens.
    """
    count = int(marks.sum())
    if count and count != len(rows):
        raise TensorError(
            f"{VISUAL_MASKS} marks {count} tokens, but {VISUAL_EMBEDS} has rows for {len(rows)}"
        )
    found = np.zeros((len(marks), *rows.shape[1:]), rows.dtype)  # no memory until written
    if count:
        found[marks] = rows
    return found
