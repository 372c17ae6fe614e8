"""Vision encoder of Qwen3-VL: from pixels to embeddings and features of the tokens of visuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from genai_layer.embedding.folder import Folder
from genai_layer.embedding.position_table import PositionTable
from genai_layer.runtime import Array
from genai_layer.vision.encoder import EncodedVisual
from genai_layer.vision.kinds import Kind
from genai_layer.vision.patches import Frames
from genai_layer.vision.shaped_model import ShapedModel

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
