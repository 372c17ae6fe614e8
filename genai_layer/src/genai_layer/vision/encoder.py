"""Vision encoder: from pixels to embeddings of the tokens of images and videos."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

import numpy as np

from genai_layer.runtime import Array
from genai_layer.vision.folder import VisionFolder
from genai_layer.vision.patches import Frames, Grid
from genai_layer.vision.prompt_tags import Kind
from genai_layer.vision.shaped_model import ShapedModel

_STATES = "hidden_states"
_OUTPUT = "last_hidden_state"


@dataclass(frozen=True)
class EncodedVisual:
    """Embeddings of the tokens of an image or a video."""

    kind: Kind
    grid: Grid
    """Size in tokens."""
    embeddings: Array
    """f32 [tokens, width], row by row, one group of frames after the other."""

    @cached_property
    def _digest(self) -> int:
        digest = blake2b(repr((self.kind.name, self.grid)).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(self.embeddings).data)
        return int.from_bytes(digest.digest())

    def identities(self) -> Iterable[int]:
        """Return a negative number for each token, which no token of another visual has."""
        return (-1 - place - (self._digest << 32) for place in range(self.grid.count))


class VisionEncoder:
    """The two models of the vision encoder: patches, and the layers that merge them to tokens.

    Each image, and each group of a video's frames, is encoded alone, so its attention has no mask:
    openvino_genai encodes those of a prompt together, and masks the attention between them.

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

    def encode(self, kind: Kind, frames: Frames) -> EncodedVisual:
        """Encode an image, which is one frame, or a video.

        Raises:
            PromptError: the image is too elongated.
            RuntimeFailure: the runtime failed.
        """
        groups = [self._patcher.prepare(group) for group in self._patcher.groups(frames)]
        size = self._patcher.token_grid(groups[0][1])
        embeddings = [self._encode_group(patches, grid) for patches, grid in groups]
        grid = replace(size, time=len(groups))
        return EncodedVisual(kind, grid, np.concatenate(embeddings))

    def _encode_group(self, patches: Array, grid: Grid) -> Array:
        count = grid.count
        inputs = {
            _STATES: self._patches.run({_STATES: patches}, _OUTPUT),
            "attention_mask": np.zeros((1, count, count), np.float32),
            "rotary_pos_emb": self._patcher.rotary_embedding(grid, self._rotary_width),
        }
        return self._merger.run(inputs, _OUTPUT)
