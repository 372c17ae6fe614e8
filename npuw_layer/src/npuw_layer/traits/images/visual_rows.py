"""What is given for tokens of images alone (DeepStack), as rows of all tokens.

The caller marks which of the new tokens are of images, and gives features for those, in their
order: as many as are marked, however many tokens there are. On the host they become rows like any
other, zero for text, so that a prompt may be cut anywhere, within an image too.

Source: openvino.genai's inputs embedder for Qwen 3 VL, and what its pipeline gives where no image
is: one row of zeros, and no token marked.
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
"""Which tokens are of images."""


@dataclass(frozen=True, slots=True)
class VisualRows:
    """Features as the caller gives them, f32 [levels, tokens of images, width]."""

    levels: int
    """To how many layers they go."""
    width: int
    name: str = VISUAL_EMBEDS
    element: str = "f32"
    per_token: bool = False

    @staticmethod
    def of(port: TokenInput) -> VisualRows:
        """What to give for an input of all tokens."""
        levels, width = port.each
        return VisualRows(levels, width)

    @property
    def described(self) -> str:
        """Their type and shape, for people."""
        return f"{self.element} [{self.levels}, tokens of images, {self.width}]"

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether values of a shape are those of some tokens."""
        return len(shape) == 3 and (shape[0], shape[2]) == (self.levels, self.width)

    def rows(self, values: Array) -> Array:
        """Order values by tokens, [tokens of images, levels, width]; a view."""
        return values.transpose(1, 0, 2)


def spread(marks: Array, rows: Array) -> Array:
    """Give all tokens a row.

    Args:
        marks: boolean [n], which are of images.
        rows: of those, [as many, levels, width]; if there are none, any.

    Returns:
        [n, levels, width]: zeros where no image is.

    Raises:
        TensorError: there are as many rows as not marked.
    """
    count = int(marks.sum())
    if count and count != len(rows):
        raise TensorError(
            f"{VISUAL_MASKS} marks {count} tokens, and {VISUAL_EMBEDS} has rows of {len(rows)}"
        )
    found = np.zeros((len(marks), *rows.shape[1:]), rows.dtype)  # no memory until written
    if count:
        found[marks] = rows
    return found
