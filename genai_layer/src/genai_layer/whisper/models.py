"""Encoder and decoder of an exported Whisper's folder: its files, and their compilation.

On device NPU the encoder is compiled as a static model, the decoder by NPUW.

Source: openvino_genai (StatefulImpl for NPU); ours: a property passes the number of frames to the
decoder, where openvino_genai reshapes its model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from genai_layer.errors import ModelError, PropertyError, runtime_failures
from genai_layer.files import is_file, read_counts
from genai_layer.model_folder import add_end_of_text
from genai_layer.npu import encoder_properties
from genai_layer.runtime import Array, Core, InferRequest
from genai_layer.tokenizer import Tokenizer
from genai_layer.whisper.features import FeatureExtractor
from genai_layer.whisper.generation_config import WhisperGenerationConfig


@dataclass(frozen=True, slots=True)
class WhisperFolder:
    """Paths and parameters from a model folder."""

    encoder: Path
    decoder: Path
    features: FeatureExtractor
    config: WhisperGenerationConfig
    source_positions: int
    """Number of frames that the encoder returns for a window."""
    target_positions: int
    """Maximum number of tokens in prompt and text together."""

    @staticmethod
    def read(folder: Path, tokenizer: Tokenizer) -> WhisperFolder:
        """Read a folder; the tokenizer may add the end-of-text id.

        Raises:
            ModelError: a file is missing or broken.
        """
        parts = [folder / f"openvino_{part}_model.xml" for part in ("encoder", "decoder")]
        for part in parts:
            if not is_file(part):
                raise ModelError(
                    f"{part}: no such file; export the model with optimum-cli export openvino "
                    "--task automatic-speech-recognition-with-past"
                )
        path = folder / "generation_config.json"
        config = WhisperGenerationConfig(path) if is_file(path) else WhisperGenerationConfig()
        add_end_of_text(config, tokenizer)
        defaults = {"max_source_positions": 1500, "max_target_positions": 448}
        sizes = read_counts(folder / "config.json", defaults)
        return WhisperFolder(
            encoder=parts[0],
            decoder=parts[1],
            features=FeatureExtractor.from_file(folder / "preprocessor_config.json"),
            config=config,
            source_positions=sizes["max_source_positions"],
            target_positions=sizes["max_target_positions"],
        )


_RENAMED = {
    "MAX_PROMPT_LEN": "NPUW_LLM_MAX_PROMPT_LEN",
    "MIN_RESPONSE_LEN": "NPUW_LLM_MIN_RESPONSE_LEN",
}
_UNSUPPORTED = ("BLOB_PATH", "EXPORT_BLOB", "STATIC_PIPELINE")


def split_properties(
    properties: Mapping[str, Any], eos_token_id: int, frames: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the encoder's properties, and the decoder's.

    Raises:
        PropertyError: a property is not supported, or is given under two names.
    """
    given: dict[str, Any] = {}
    for name, value in properties.items():
        new = _RENAMED.get(name, name)
        if name in _UNSUPPORTED:
            raise PropertyError(f"{name} is not supported by WhisperPipeline; use CACHE_DIR")
        if new in given:
            raise PropertyError(f"{name}: given twice, also as {new}; leave one out")
        given[new] = value
    decoder = {
        "NPU_USE_NPUW": "YES",
        "NPUW_LLM": "YES",
        "NPUW_WHISPER": "YES",
        "NPUW_WHISPER_EOS_TOKEN": eos_token_id,
        "NPUW_WHISPER_ENCODER_LEN": frames,
        **given,
    }
    return encoder_properties(given), decoder


_SCORES = {"NPUW_WHISPER_DECOMPOSE_SDPA": "YES"}
"""Option that adds an output of cross-attention's scores for each layer, and allows all prompts."""

_SHORT_PROMPT = 4
"""Longest prompt of NPUW's decoder by default: begin, language, task, and no timestamps."""


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
        compiled = partial(_request, core, device)
        self._encoder = compiled(folder.encoder, encoder)
        self._decoder = compiled(folder.decoder, decoder)
        self._long_decoder: InferRequest | None = None
        longest = {"NPUW_LLM_MAX_PROMPT_LEN": folder.target_positions - 1}
        self._compile_long = partial(compiled, folder.decoder, decoder | longest)
        limited = device == "NPU" and not scores and not longest.keys() & decoder.keys()
        self._longest = _SHORT_PROMPT if limited else folder.target_positions

    def decoder(self, prompt: int) -> InferRequest:
        """Return a request of a decoder that reads a prompt of so many tokens.

        On NPU a prompt takes the time of the longest one that its decoder reads, so the decoder for
        long prompts is another one, compiled for the first of them.

        Raises:
            RuntimeFailure: the runtime cannot compile the model.
        """
        if prompt <= self._longest:
            return self._decoder
        self._long_decoder = self._long_decoder or self._compile_long()
        return self._long_decoder

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


def _request(core: Core, device: str, model: Path, properties: Mapping[str, Any]) -> InferRequest:
    """Compile a model, and return a request of it.

    Raises:
        RuntimeFailure: the runtime cannot compile the model.
    """
    with runtime_failures():
        return core.compile_model(model, device, properties).create_infer_request()
