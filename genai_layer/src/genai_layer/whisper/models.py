"""Encoder and decoder of a model folder, compiled for a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from genai_layer.errors import runtime_failures
from genai_layer.runtime import Array, Core, InferRequest
from genai_layer.tokenizer import Tokenizer
from genai_layer.whisper.folder import WhisperFolder
from genai_layer.whisper.properties import split_properties

_SCORES = {"NPUW_WHISPER_DECOMPOSE_SDPA": "YES"}
"""Option that adds an output of cross-attention's scores for each layer."""


class WhisperModels:
    """Tokenizer, and requests of encoder and decoder.

    Args:
        folder: files of the model folder.
        tokenizer: the tokenizer.
        core: the runtime.
        device: "NPU", "CPU" …
        properties: options under OpenVINO's names.
        scores: True if the decoder also returns scores, for timestamps of words.

    Raises:
        PropertyError: a property is not supported, or is given under two names.
        RuntimeFailure: the runtime cannot compile the model.
    """

    def __init__(
        self,
        folder: WhisperFolder,
        tokenizer: Tokenizer,
        core: Core,
        device: str,
        properties: Mapping[str, Any],
        scores: bool,
    ) -> None:
        self.folder, self.tokenizer, self.scores = folder, tokenizer, scores
        encoder, decoder = dict(properties), dict(properties)
        if device == "NPU":
            eos, frames = folder.config.eos_token_id, folder.source_positions
            encoder, decoder = split_properties(properties, eos, frames)
        decoder |= _SCORES if scores else {}
        with runtime_failures():
            hears = core.compile_model(folder.encoder, device, encoder)
            writes = core.compile_model(folder.decoder, device, decoder)
            self._encoder: InferRequest = hears.create_infer_request()
            self.decoder: InferRequest = writes.create_infer_request()

    def encode(self, features: Array) -> Array:
        """Encode one window, f32 [1, filters, frames]; return a copy of the hidden states.

        Raises:
            RuntimeFailure: the runtime failed.
        """
        with runtime_failures():
            self._encoder.infer({"input_features": features})
            return np.array(self._encoder.get_tensor("last_hidden_state").data)

    def words(self, text: str | None) -> list[int]:
        """Return the tokens of words that precede a text; None has none."""
        if not text:
            return []
        ids = self.tokenizer.encode(f" {text}", add_special_tokens=False)
        return ids.input_ids.data[0].tolist()
