"""Vision encoder of Qwen3-VL: from pixels to embeddings and features of the tokens of visuals.

Position embeddings of patches are interpolated from a table of fixed size.

Source: docs/reference/genai.md#embeddings-of-images.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from genai_layer.embedding.folder import Folder
from genai_layer.runtime import Array
from genai_layer.vision.encoder import EncodedVisual
from genai_layer.vision.patches import Floats, Frames, Grid
from genai_layer.vision.prompt_tags import Kind
from genai_layer.vision.shaped_model import ShapedModel

_ROWS = 4
"""Rows of the model's input."""


class PositionTable:
    """Table of position embeddings.

    Args:
        rows: f32 [side, side, width].
    """

    def __init__(self, rows: Floats) -> None:
        self._rows = rows

    @staticmethod
    def read(model: ShapedModel, side: int) -> PositionTable:
        """Read the table from its model, which looks up indices i64 [4, n].

        Raises:
            RuntimeFailure: the runtime failed.
        """
        count = side * side
        places = np.arange(-(-count // _ROWS) * _ROWS, dtype=np.int64).clip(max=count - 1)
        found = model.run({"input": places.reshape(_ROWS, -1)}, "last_hidden_state")
        rows = found.reshape(len(places), -1)[:count]
        return PositionTable(np.asarray(rows, np.float32).reshape(side, side, -1))

    def at(self, grid: Grid) -> Floats:
        """Return the embeddings of an image's patches, f32 [rows, columns, width].

        The corners of the table and of the image coincide; between them, the interpolation is
        bilinear.
        """
        side = len(self._rows)
        above, below, down = _between(grid.height, side)
        left, right, across = _between(grid.width, side)
        down, across = down[:, None, None], across[None, :, None]
        one = np.float32(1)
        corners = (
            (above, left, (one - down) * (one - across)),
            (above, right, (one - down) * across),
            (below, left, down * (one - across)),
            (below, right, down * across),
        )
        total = np.zeros((grid.height, grid.width, self._rows.shape[2]), np.float32)
        for rows, columns, weights in corners:
            total += self._rows[rows[:, None], columns] * weights
        return total


def _between(count: int, side: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Floats]:
    """Return the table's places before and after each patch, and the distance from the first."""
    scale = np.float32(side - 1) / np.float32(count - 1) if count > 1 else np.float32(0)
    places = np.arange(count, dtype=np.float32) * scale
    before = places.astype(np.int64).clip(max=side - 1)
    distance = places - before.astype(np.float32)
    return before, (before + 1).clip(max=side - 1), distance


_STATES, _OUTPUT = "hidden_states", "last_hidden_state"
_FEATURES = "deepstack_feature_lists"


@dataclass(frozen=True, slots=True)
class EncodedGroup(EncodedVisual):
    """Embeddings and features of the tokens of an image, or of a group of a video's frames."""

    features: Array
    """f32 [levels, tokens, width], which layers of the language model add to hidden states."""


class GroupEncoder:
    """The two models of the vision encoder: patches, and the layers that merge them to tokens.

    Args:
        patches: the model of patches.
        merger: the model of the layers.
        table: position embeddings.
        folder: sizes and settings.
    """

    def __init__(
        self, patches: ShapedModel, merger: ShapedModel, table: PositionTable, folder: Folder
    ) -> None:
        self._patches = patches
        self._merger = merger
        self._table = table
        self._folder = folder

    def encode(self, kind: Kind, frames: Frames) -> list[EncodedGroup]:
        """Encode an image, which is one frame, or the groups of a video's frames.

        Raises:
            PromptError: the image is too elongated.
            RuntimeFailure: the runtime failed.
        """
        patcher = self._folder.patchers[kind]
        return [self._encode_group(kind, group) for group in patcher.groups(frames)]

    def _encode_group(self, kind: Kind, frames: Frames) -> EncodedGroup:
        patcher = self._folder.patchers[kind]
        pixels, grid = patcher.prepare(frames)
        states = self._patches.run({_STATES: pixels}, _OUTPUT)
        inputs = {
            _STATES: states + patcher.token_by_token(self._table.at(grid), grid),
            "attention_mask": np.zeros((1, grid.count, grid.count), np.float32),
            "rotary_pos_emb": patcher.rotary_embedding(grid, self._folder.rotary_width),
        }
        embeddings, features = self._merger.run_for(inputs, [_OUTPUT, _FEATURES])
        return EncodedGroup(kind, patcher.token_grid(grid), embeddings, features)
