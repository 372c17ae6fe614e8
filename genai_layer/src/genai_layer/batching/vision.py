"""Models of the family Qwen2-VL in continuous batching.

Their language model reads embeddings, so requests have rows of their own and run in turn.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from genai_layer.batching.compiled import MOST_SLOTS, BatchedModel
from genai_layer.batching.generate_call import Media
from genai_layer.batching.new_requests import Given, Prepared
from genai_layer.batching.places import Places
from genai_layer.chat_history import ChatHistory
from genai_layer.decoding.language_model import Inputs
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.errors import PromptError, runtime_failures
from genai_layer.files import is_file
from genai_layer.npu import settled_lengths
from genai_layer.prompt import Prompt
from genai_layer.properties import read_properties
from genai_layer.runtime import Array, Core
from genai_layer.scheduler import SchedulerConfig
from genai_layer.tokenizer import Tokenizer
from genai_layer.vision.folder import VisionFolder
from genai_layer.vision.model_source import ModelsInFolder, split_properties
from genai_layer.vision.prompt_embedder import PromptEmbedder
from genai_layer.vision.prompts import VisionPrompts
from genai_layer.vision.results import VLMPerfMetrics


def has_vision(folder: Path) -> bool:
    """Return whether a folder has a model of images."""
    return is_file(folder / "openvino_language_model.xml")


def open_vision(
    core: Core,
    folder: Path,
    device: str,
    properties: dict[str, Any],
    scheduler: SchedulerConfig,
    tokenizer: Tokenizer,
) -> tuple[BatchedModel, VisionTexts]:
    """Compile the models of a folder.

    Raises:
        ModelError: a model or a file is missing, a file is broken, or the model is of another
            family.
        PropertyError: a property is unknown or wrong.
        RuntimeFailure: the runtime cannot compile a model.
    """
    language = others = read_properties(properties)
    count, lengths = scheduler.max_num_seqs, None
    if device == "NPU":
        count = min(count, MOST_SLOTS)
        language, others, lengths = split_properties(language)
    source = ModelsInFolder(folder)
    settings = VisionFolder.read(folder)
    embedder = PromptEmbedder(core, source, settings, tokenizer, device, others)
    with runtime_failures():
        compiled = core.compile_model(source.model(core, "language"), device, language)
        lengths = settled_lengths(compiled, lengths, imported=False)
    places = Places(compiled, count, lengths, batches=False)
    model = BatchedModel(places, lengths, scheduler.num_kv_blocks)
    return model, VisionTexts(embedder, tokenizer)


class VisionTexts:
    """Prompts with images and videos; ``batching.new_requests.Prompts``.

    Args:
        embedder: the models before the language model.
        tokenizer: the model's.
    """

    wraps_added: ClassVar[bool] = True

    def __init__(self, embedder: PromptEmbedder, tokenizer: Tokenizer) -> None:
        self._embedder = embedder
        self._tokenizer = tokenizer
        self._prompts = VisionPrompts(tokenizer)
        self._lock = threading.Lock()
        """Lock of the models, which threads that add requests share with the one that steps."""

    def prepare(
        self,
        prompt: Given,
        media: Media | None,
        template: bool,
        load_time: float,
        began: Stopwatch,
    ) -> Prepared:
        """Return the prompt; see ``Prompts.prepare``."""
        if isinstance(prompt, Prompt):
            raise PromptError("token ids: a model of images reads texts; pass a text or a chat")
        metrics = VLMPerfMetrics(load_time)
        media = media or Media()
        with self._lock:
            given = media.images, media.videos
            visuals = self._embedder.encode(*given, metrics.vlm_raw_metrics)
        history = prompt if isinstance(prompt, ChatHistory) else None
        if isinstance(prompt, str) and template:
            history = ChatHistory([{"role": "user", "content": prompt}])
        if history is None:
            assert isinstance(prompt, str)  # chats have a history
            made = self._prompts.of_text(prompt, visuals, metrics.raw_metrics)
        else:
            made = self._prompts.of_chat(history, visuals, metrics.raw_metrics)
        inputs = self._locked(self._embedder.inputs(made, metrics, began))
        if history is None:
            return Prepared(Prompt(made.ids), metrics, inputs)
        remember = partial(self._prompts.remember, history, made)
        return Prepared(Prompt(made.ids), metrics, inputs, remember)

    def _locked(self, inputs: Inputs) -> Inputs:
        def locked(ids: npt.NDArray[np.int64], past: int) -> Mapping[str, Array]:
            with self._lock:
                return inputs.make(ids, past)

        return replace(inputs, make=locked)
