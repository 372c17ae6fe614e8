"""Inputs for the language parts of vision models: embeddings and positions of random tokens.

Tokens 10 to 33 are an image of 4 by 6 patches. Further inputs of each token are drawn in addition;
image features only for the tokens of images (``visual_pos_masks``). Everything is drawn from a
seed, so the golden files contain only OpenVINO's results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

WIDTH = 96
MOST = 160
IMAGE, ROWS, COLUMNS = slice(10, 34), 4, 6
LEVELS = 3
"""Number of layers that take image features."""
LAYERS, LAYER_WIDTH = 4, 16
"""Width of a token's input to each layer."""


class Drawn:
    """Inputs of ``MOST`` tokens.

    Args:
        position_axes: 0 if positions count tokens; else the number of axes (M-RoPE).
        seed: seed of the embeddings.
        beside: names of further inputs.
    """

    def __init__(self, position_axes: int = 0, seed: int = 3, beside: Sequence[str] = ()) -> None:
        draw = np.random.RandomState(seed)
        self.embeds = (draw.standard_normal((1, MOST, WIDTH)) * 0.5).astype(np.float32)
        self.types = np.zeros((1, MOST), np.int64)
        self.types[:, IMAGE] = 1
        self.positions = np.arange(MOST, dtype=np.int64)[None]
        if position_axes:
            self.positions = _of_several_axes(position_axes)[:, None]
        self.marks = self.types == 1
        self.features = (draw.standard_normal((LEVELS, MOST, WIDTH)) * 0.5).astype(np.float32)
        """Features of every token, for the case that it belongs to an image."""
        self.layers = draw.standard_normal((1, MOST, LAYERS, LAYER_WIDTH)).astype(np.float32)
        self._beside = beside

    def inputs(self, begin: int, end: int, stored: int | None = None) -> Mapping[str, np.ndarray]:
        """Return the inputs of some tokens.

        Args:
            begin: index of the first token.
            end: index after the last token.
            stored: number of stored tokens before them; by default ``begin``.
        """
        beside = {
            "visual_pos_masks": self.marks[:, begin:end],
            "deepstack_visual_embeds": self._features(begin, end),
            "per_layer_inputs": self.layers[:, begin:end],
        }
        total = (begin if stored is None else stored) + end - begin
        return {
            "inputs_embeds": self.embeds[:, begin:end],
            "attention_mask": np.ones((1, total), np.int64),
            "position_ids": self.positions[..., begin:end],
            "token_type_ids": self.types[:, begin:end],
            "beam_idx": np.zeros(1, np.int32),
            **{name: beside[name] for name in self._beside},
        }

    def _features(self, begin: int, end: int) -> np.ndarray:
        """Return features of image tokens; without any, a row of zeros, like openvino_genai."""
        found = self.features[:, begin:end][:, self.marks[0, begin:end]]
        return found if found.size else np.zeros((LEVELS, 1, WIDTH), np.float32)


def _of_several_axes(axes: int) -> np.ndarray:
    """Count time, height and width as Qwen 2 VL does: text continues after the longest side."""
    first, patches = IMAGE.start, np.arange(ROWS * COLUMNS)
    positions = np.tile(np.arange(MOST, dtype=np.int64), (axes, 1))
    positions[-3:, IMAGE] = np.stack([0 * patches, patches // COLUMNS, patches % COLUMNS]) + first
    after = MOST - IMAGE.stop
    positions[:, IMAGE.stop :] = np.arange(after) + first + max(ROWS, COLUMNS)
    return positions
