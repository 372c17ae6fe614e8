"""Vision encoder: from pixels to embeddings of image tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from genai_layer.runtime import Array
from genai_layer.vision.folder import VisionFolder
from genai_layer.vision.image import Image
from genai_layer.vision.patches import Grid
from genai_layer.vision.shaped_model import ShapedModel

_STATES = "hidden_states"
_OUTPUT = "last_hidden_state"


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """Embeddings of an image's tokens."""

    grid: Grid
    """Size of the image in tokens."""
    embeddings: Array
    """f32 [tokens, width], row by row."""


class VisionEncoder:
    """The two models of the vision encoder: patches, and the layers that merge them to tokens.

    Each image is encoded alone, so its attention has no mask: openvino_genai encodes the images of
    a prompt together, and masks the attention between them.

    Args:
        patches: the model of patches.
        merger: the model of the layers.
        folder: sizes and settings.
    """

    def __init__(self, patches: ShapedModel, merger: ShapedModel, folder: VisionFolder) -> None:
        self._patches = patches
        self._merger = merger
        self._patcher = folder.patcher
        self._rotary_width = folder.rotary_width

    def encode(self, image: Image) -> EncodedImage:
        """Encode an image.

        Raises:
            PromptError: the image is too elongated.
            RuntimeFailure: the runtime failed.
        """
        patches, grid = self._patcher.prepare(image)
        count = grid.patches
        inputs = {
            _STATES: self._patches.run({_STATES: patches}, _OUTPUT),
            "attention_mask": np.zeros((1, count, count), np.float32),
            "rotary_pos_emb": self._patcher.rotary_embedding(grid, self._rotary_width),
        }
        return EncodedImage(self._patcher.token_grid(grid), self._merger.run(inputs, _OUTPUT))
