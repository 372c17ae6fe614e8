"""Compiled model of texts, with one request."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from genai_layer.abilities import ListsInputs
from genai_layer.errors import PromptTooLong, RuntimeFailure, runtime_failures
from genai_layer.files import read_object
from genai_layer.model_folder import find_model
from genai_layer.npu import npu_properties
from genai_layer.properties import read_properties
from genai_layer.runtime import Array, Core, InferRequest
from genai_layer.runtimes import load_core
from genai_layer.texts.encoding import EncodedTexts

_DEFAULT_LENGTH = 1024
"""Default maximum number of tokens in a text on an NPU, as in openvino_genai."""

_GRAIN = 64
"""Step of text lengths on an NPU."""


class TextModel:
    """Compiled model with one request, which reads a batch per inference.

    Args:
        folder: the model's folder.
        device: "NPU", "CPU" …
        properties: of the runtime, under OpenVINO's names; on NPU also MAX_PROMPT_LEN.
        kind: NPUW's option for the kind of model.
        max_length: maximum number of tokens in a text, if it is known.
        core: a runtime, instead of the device's.

    Raises:
        ModelError: the folder has no model, or a broken config.json.
        PropertyError: a property or the device is unknown.
        RuntimeFailure: the runtime cannot compile the model.
    """

    def __init__(
        self,
        folder: Path,
        device: str,
        properties: Mapping[str, Any],
        kind: str,
        max_length: int | None,
        core: Core | None,
    ) -> None:
        wanted = read_properties(properties)
        self._longest: int | None = None
        model, config = find_model(folder), read_object(folder / "config.json")
        if device == "NPU":
            longest = max_length or _most_tokens(config)
            if not {"MAX_PROMPT_LEN", "NPUW_LLM_MAX_PROMPT_LEN", "BLOB_PATH"} & wanted.keys():
                wanted["MAX_PROMPT_LEN"] = longest
            wanted, lengths = npu_properties(wanted)
            self._longest = None if lengths is None else lengths.max_prompt_len
            wanted.setdefault(kind, "YES")
        core = load_core(device) if core is None else core
        with runtime_failures():
            compiled = core.compile_model(model, device, wanted)
            self._request: InferRequest = compiled.create_infer_request()
        self._inputs = _names(compiled)

    def start(self, texts: EncodedTexts) -> None:
        """Begin to read a batch; ``wait`` returns its output.

        Raises:
            PromptTooLong: a text is longer than the model's programs.
            RuntimeFailure: the runtime rejects the batch.
        """
        longest = texts.ids.shape[1]
        if self._longest is not None and longest > self._longest:
            raise PromptTooLong(
                f"MAX_PROMPT_LEN={self._longest}: a text has {longest} tokens; raise "
                "MAX_PROMPT_LEN, shorten the text, or set max_length, which truncates"
            )
        given = {
            "input_ids": texts.ids,
            "attention_mask": texts.mask,
            "token_type_ids": texts.types,
            "position_ids": np.maximum(texts.mask.cumsum(1) - 1, 0),
            "beam_idx": np.arange(len(texts.ids), dtype=np.int32),
        }
        if "beam_idx" in self._inputs:
            self._request.reset_state()
        with runtime_failures():
            self._request.start_async({n: v for n, v in given.items() if n in self._inputs})

    def wait(self, output: str) -> Array:
        """Return a copy of an output of the batch.

        Raises:
            RuntimeFailure: the inference failed.
        """
        with runtime_failures():
            self._request.wait()
            return np.array(self._request.get_tensor(output).data)


def _names(compiled: object) -> set[str]:
    """Return the input names of a compiled model."""
    if not isinstance(compiled, ListsInputs):
        raise RuntimeFailure("the runtime does not list the model's inputs (ShowsInputs)")
    return {name for port in compiled.inputs for name in port.get_names()}


def _most_tokens(config: Mapping[str, Any]) -> int:
    """Return the default number of tokens, limited to the model's positions."""
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int) or positions < _GRAIN:
        return _DEFAULT_LENGTH
    return min(_DEFAULT_LENGTH, positions // _GRAIN * _GRAIN)
