"""What the language parts of models that see are told: embeddings and positions of random tokens.

Tokens 10 to 33 are an image of 4 by 6 patches. Drawn from a seed, so that goldens, which hold what
OpenVINO says of them, need not hold them, too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

WIDTH = 96
MOST = 160
IMAGE, ROWS, COLUMNS = slice(10, 34), 4, 6


class Drawn:
    """The inputs of ``MOST`` tokens.

    Args:
        position_axes: 0 if positions count tokens; else of how many axes (M-RoPE) they are.
        seed: of the embeddings.
    """

    def __init__(self, position_axes: int = 0, seed: int = 3) -> None:
        draw = np.random.RandomState(seed)
        self.embeds = (draw.standard_normal((1, MOST, WIDTH)) * 0.5).astype(np.float32)
        self.types = np.zeros((1, MOST), np.int64)
        self.types[:, IMAGE] = 1
        self.positions = np.arange(MOST, dtype=np.int64)[None]
        if position_axes:
            self.positions = _of_several_axes(position_axes)[:, None]

    def inputs(self, begin: int, end: int, stored: int | None = None) -> Mapping[str, np.ndarray]:
        """Those of some tokens.

        Args:
            begin: the first one.
            end: the one behind the last.
            stored: tokens before them; ``begin`` if not given.
        """
        total = (begin if stored is None else stored) + end - begin
        return {
            "inputs_embeds": self.embeds[:, begin:end],
            "attention_mask": np.ones((1, total), np.int64),
            "position_ids": self.positions[..., begin:end],
            "token_type_ids": self.types[:, begin:end],
            "beam_idx": np.zeros(1, np.int32),
        }


def _of_several_axes(axes: int) -> np.ndarray:
    """Time, height and width, as Qwen 2 VL counts them: text goes on behind the longest side."""
    first, patches = IMAGE.start, np.arange(ROWS * COLUMNS)
    positions = np.tile(np.arange(MOST, dtype=np.int64), (axes, 1))
    positions[-3:, IMAGE] = np.stack([0 * patches, patches // COLUMNS, patches % COLUMNS]) + first
    after = MOST - IMAGE.stop
    positions[:, IMAGE.stop :] = np.arange(after) + first + max(ROWS, COLUMNS)
    return positions
