"""Embeddings of token ids."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from genai_layer.runtime import Array
from genai_layer.vision.shaped_model import ShapedModel

_PART = 64
"""Number of ids per inference: a runtime of static models compiles a single one."""


class TextEmbeddings:
    """Embedding table of a language model.

    Args:
        model: the model with the table.
    """

    def __init__(self, model: ShapedModel) -> None:
        self._model = model

    def embed(self, ids: npt.NDArray[np.int64]) -> Array:
        """Return the embeddings f32 [n, width] of ids i64 [n].

        Raises:
            RuntimeFailure: the runtime failed.
        """
        padded = np.pad(ids, (0, -len(ids) % _PART)).reshape(-1, 1, _PART)
        parts = [self._model.run({"input": part}, "inputs_embeds")[0] for part in padded]
        return np.concatenate(parts)[: len(ids)]
