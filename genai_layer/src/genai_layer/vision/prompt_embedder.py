"""Models before the language model: images, videos and token ids become embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from genai_layer.decoding.language_model import Inputs
from genai_layer.decoding.stopwatch import Stopwatch
from genai_layer.errors import ModelError
from genai_layer.runtime import Array, Core
from genai_layer.tokenizer import Tokenizer
from genai_layer.vision.embedded_prompt import EmbeddedPrompt
from genai_layer.vision.encoder import EncodedVisual, VisionEncoder
from genai_layer.vision.folder import VisionFolder
from genai_layer.vision.model_source import ModelsInFolder, ModelsInMemory
from genai_layer.vision.prompt_tags import IMAGE, KINDS, VIDEO, Kind
from genai_layer.vision.prompts import VisionPrompt
from genai_layer.vision.results import VLMPerfMetrics, VLMRawPerfMetrics
from genai_layer.vision.shaped_model import ShapedModel, TextEmbeddings
from genai_layer.vision.visuals import Image, Video


class PromptEmbedder:
    """Vision encoder and embedding table of a model.

    Args:
        core: the runtime.
        source: the models.
        folder: sizes and settings.
        tokenizer: the model's.
        device: the device.
        properties: of the runtime.

    Raises:
        ModelError: a model is missing, or the tokenizer has no token for the places of visuals.
        RuntimeFailure: the runtime cannot compile a model.
    """

    def __init__(
        self,
        core: Core,
        source: ModelsInFolder | ModelsInMemory,
        folder: VisionFolder,
        tokenizer: Tokenizer,
        device: str,
        properties: Mapping[str, Any],
    ) -> None:
        self._pads = pad_ids(tokenizer)
        self._time_step = folder.time_step

        def shaped(part: str) -> ShapedModel:
            return ShapedModel(core, part, source.model(core, part), device, properties)

        patches, merger = shaped("vision_embeddings"), shaped("vision_embeddings_merger")
        self._encoder = VisionEncoder(patches, merger, folder)
        self._text = TextEmbeddings(shaped("text_embeddings"))

    def encode(
        self, images: Sequence[Image], videos: Sequence[Video], raw: VLMRawPerfMetrics
    ) -> list[EncodedVisual]:
        """Encode the images and videos of a generation.

        Raises:
            PromptError: an image is too elongated.
            RuntimeFailure: the runtime failed.
        """
        watch = Stopwatch()
        given = [(IMAGE, image[None]) for image in images] + [(VIDEO, video) for video in videos]
        encoded = [self._encoder.encode(kind, frames) for kind, frames in given]
        raw.vision_encoding_durations.append(watch.microseconds())
        return encoded

    def embed(
        self, ids: Sequence[int], visuals: Sequence[EncodedVisual], raw: VLMRawPerfMetrics
    ) -> EmbeddedPrompt:
        """Return the language model's inputs for a prompt.

        Args:
            ids: the prompt.
            visuals: the images and videos in the order of their places.
            raw: collects the measurements.

        Raises:
            PromptError: the prompt has other numbers of image or video tokens than the visuals.
            RuntimeFailure: the runtime failed.
        """
        watch = Stopwatch()
        prompt = EmbeddedPrompt(ids, visuals, self._pads, self._time_step, self._text)
        raw.text_embedding_durations.append(watch.microseconds())
        raw.per_image_slice_counts.extend(1 for each in visuals if each.kind is IMAGE)
        return prompt

    def inputs(self, prompt: VisionPrompt, metrics: VLMPerfMetrics, began: Stopwatch) -> Inputs:
        """Return the language model's inputs.

        The prompt's embeddings are computed when inputs are first made: once the prompt is known to
        fit.

        Args:
            prompt: the prompt.
            metrics: collects the measurements.
            began: start of the call.
        """
        raw, made = metrics.vlm_raw_metrics, list[EmbeddedPrompt]()

        def make(ids: npt.NDArray[np.int64], past: int) -> Mapping[str, Array]:
            if not made:
                made.append(self.embed(prompt.ids, prompt.visuals, raw))
                raw.prepare_embeddings_durations.append(began.microseconds())
            return made[0](ids, past)

        places = [place for place, token in enumerate(prompt.ids) if token in self._pads.values()]
        tokens = chain.from_iterable(each.identities() for each in prompt.visuals)
        return Inputs(make, dict(zip(places, tokens, strict=False)))


def pad_ids(tokenizer: Tokenizer) -> dict[Kind, int]:
    """Return the ids of the tokens at the places of visuals.

    Raises:
        ModelError: the tokenizer has no token for the places of visuals.
    """
    return {kind: _only_id(tokenizer, kind.pad) for kind in KINDS}


def _only_id(tokenizer: Tokenizer, token: str) -> int:
    ids = tokenizer.encode(token, add_special_tokens=False).input_ids.data[0].tolist()
    if len(ids) != 1:
        raise ModelError(f"the tokenizer has no token {token}; use the model's own")
    return ids[0]
