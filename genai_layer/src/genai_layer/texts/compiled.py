"""Compiled model of texts, with one request; tokenisation of texts, or pairs, into a batch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from genai_layer.abilities import ListsPorts, Port
from genai_layer.encoding import check_texts
from genai_layer.errors import (
    ConfigError,
    ModelError,
    PromptError,
    PromptTooLong,
    RuntimeFailure,
    runtime_failures,
)
from genai_layer.files import read_object
from genai_layer.long_texts import Text
from genai_layer.model_folder import find_model
from genai_layer.model_kinds import export_task
from genai_layer.npu import npu_properties
from genai_layer.properties import for_device, read_properties
from genai_layer.runtime import Array, Core, InferRequest
from genai_layer.runtimes import load_core
from genai_layer.texts.config import TextConfig
from genai_layer.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class EncodedTexts:
    """Batch of tokens: arrays i64 [texts, tokens]."""

    ids: Array
    mask: Array
    types: Array
    """Index, in its pair, of the text that a token belongs to."""


class TextEncoder:
    """Encoder of batches according to a configuration.

    Args:
        tokenizer: the model's; it is not changed.
        config: lengths of texts, and the padding side.
        limit: default maximum number of tokens; None for no limit.
    """

    def __init__(self, tokenizer: Tokenizer, config: TextConfig, limit: int | None = None) -> None:
        length = config.max_length or limit
        self._tokenizer = _cutting(tokenizer, length)
        self._padding = max(tokenizer.get_pad_token_id(), 0)
        self._left = (config.padding_side or tokenizer.padding_side) == "left"
        self._width = 0
        if config.pad_to_max_length:
            width = config.max_length or tokenizer.model_max_length
            if width is None:
                raise ConfigError("pad_to_max_length: max_length is not set; set it")
            self._width = width

    def encode(self, texts: Sequence[Text]) -> EncodedTexts:
        """Encode a batch.

        Raises:
            PromptError: the batch is empty, or a text has no tokens or a lone surrogate.
        """
        if not texts:
            raise PromptError("the list of texts is empty")
        check_texts(texts)
        try:
            encoded = self._tokenizer.encode_batch_fast(list(texts))
        except Exception as error:  # the library raises plain Exception
            raise PromptError(f"the texts cannot be cut to max_length: {error}") from error
        for number, one in enumerate(encoded):
            if not one.ids:
                raise PromptError(f"text {number} has no tokens: {texts[number]!r}")
        width = max(self._width, *(len(one.ids) for one in encoded))
        ids = np.full((len(encoded), width), self._padding, np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row, one in enumerate(encoded):
            count = len(one.ids)
            place = slice(width - count, None) if self._left else slice(count)
            ids[row, place], mask[row, place], types[row, place] = one.ids, 1, one.type_ids
        return EncodedTexts(ids, mask, types)


def _cutting(tokenizer: Tokenizer, length: int | None) -> tokenizers.Tokenizer:
    """Return a tokenizer without padding that truncates texts, special tokens included."""
    settings = json.loads(tokenizer.to_json())
    cut = {"max_length": length, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    settings |= {"padding": None, "truncation": None if length is None else cut}
    return tokenizers.Tokenizer.from_str(json.dumps(settings))


_DEFAULT_LENGTH = 1024
"""Default maximum number of tokens in a text on an NPU, as in openvino_genai."""

_GRAIN = 64
"""Step of text lengths on an NPU."""


@dataclass(frozen=True, slots=True)
class TextTask:
    """Use of a model of texts."""

    option: str
    """NPUW's option for such models."""
    output: str
    """Name of the output."""
    pipeline: str
    """Name of the pipeline."""


class TextModel:
    """Compiled model with one request, which reads a batch per inference.

    Args:
        folder: the model's folder.
        device: "NPU", "CPU" …
        properties: of the runtime, under OpenVINO's names; on NPU also MAX_PROMPT_LEN.
        task: use of the model.
        lengths: maximum number of tokens in a text: that which the caller sets, and that to which
            texts are truncated; None for no limit.
        core: a runtime, instead of the device's.

    Raises:
        ModelError: the folder has no model, one without the task's output, or a broken config.json.
        PropertyError: a property or the device is unknown.
        RuntimeFailure: the runtime cannot compile the model.
    """

    def __init__(
        self,
        folder: Path,
        device: str,
        properties: Mapping[str, Any],
        task: TextTask,
        lengths: tuple[int | None, int | None],
        core: Core | None,
    ) -> None:
        wanted = read_properties(for_device(properties, device))
        self._longest: int | None = None
        model, config = find_model(folder), read_object(folder / "config.json")
        if device == "NPU":
            longest = lengths[0] or min(lengths[1] or _DEFAULT_LENGTH, _most_tokens(config))
            if not {"MAX_PROMPT_LEN", "NPUW_LLM_MAX_PROMPT_LEN", "BLOB_PATH"} & wanted.keys():
                wanted["MAX_PROMPT_LEN"] = longest
            wanted, static = npu_properties(wanted)
            self._longest = None if static is None else static.max_prompt_len
            wanted.setdefault(task.option, "YES")
        core = load_core(device) if core is None else core
        with runtime_failures():
            compiled = core.compile_model(model, device, wanted)
            self._request: InferRequest = compiled.create_infer_request()
        if not isinstance(compiled, ListsPorts):
            raise RuntimeFailure("the runtime does not list the model's ports (ListsPorts)")
        self._inputs, self._output = _names(compiled.inputs), task.output
        if task.output not in _names(compiled.outputs):
            raise ModelError(
                f"{model}: has no output {task.output}; export the model with optimum-cli export "
                f"openvino --task {export_task(folder, task.pipeline)}"
            )

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

    def wait(self) -> Array:
        """Return a copy of the batch's output.

        Raises:
            RuntimeFailure: the inference failed.
        """
        with runtime_failures():
            self._request.wait()
            return np.array(self._request.get_tensor(self._output).data)


def _names(ports: Sequence[Port]) -> set[str]:
    return {name for port in ports for name in port.get_names()}


def _most_tokens(config: Mapping[str, Any]) -> int:
    """Return the default number of tokens, limited to the model's positions."""
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int) or positions < _GRAIN:
        return _DEFAULT_LENGTH
    return min(_DEFAULT_LENGTH, positions // _GRAIN * _GRAIN)
