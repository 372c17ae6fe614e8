"""Language model of an embedding pipeline: from a prompt's embeddings to one vector."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from genai_layer.errors import runtime_failures
from genai_layer.runtime import AnyModel, Array, Core
from genai_layer.texts.config import EmbeddingConfig
from genai_layer.texts.pooling import normalized, pool

_STATES = "logits"
"""Name of the hidden states, which such a model has in place of logits."""


class HiddenStates:
    """Language model without an LM head.

    Args:
        core: the runtime.
        model: the IR.
        device: the device.
        properties: of the runtime.
        config: pooling and normalization.

    Raises:
        RuntimeFailure: the runtime cannot compile the model.
    """

    def __init__(
        self,
        core: Core,
        model: AnyModel,
        device: str,
        properties: Mapping[str, object],
        config: EmbeddingConfig,
    ) -> None:
        self._config = config
        with runtime_failures():
            self._request = core.compile_model(model, device, properties).create_infer_request()

    def pooled(self, inputs: Mapping[str, Array]) -> Array:
        """Return the embedding f32 [width] of a prompt.

        Args:
            inputs: the model's inputs for one row, a whole prompt.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        with runtime_failures():
            self._request.reset_state()
            self._request.infer({**inputs, "beam_idx": np.zeros(1, np.int32)})
            states = np.array(self._request.get_tensor(_STATES).data, np.float32)
        mask = np.ones(states.shape[:2], np.int64)
        vectors = pool(states, mask, self._config.pooling_type, left=False)
        return (normalized(vectors) if self._config.normalize else vectors)[0]
