"""Models of ``EmbeddingPipeline``: of texts alone, and Qwen3-VL, which reads images and videos.

The former are over ``TextEmbeddingPipeline``. Both have the arguments of
``EmbeddingPipeline.embed``.

Source: openvino_genai.EmbeddingPipeline.embed, docs/reference/genai.md#embeddings-of-images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from genai_layer.embedding.encoder import EncodedGroup, GroupEncoder, PositionTable
from genai_layer.embedding.folder import Folder, frames_to_take, seconds_of
from genai_layer.embedding.prompts import EmbeddingPrompts, Visual
from genai_layer.errors import ConfigError, PromptError, runtime_failures
from genai_layer.model_folder import read_tokenizer
from genai_layer.npu import StaticLengths
from genai_layer.properties import for_device, read_properties
from genai_layer.runtime import AnyModel, Array, Core
from genai_layer.runtimes import load_core
from genai_layer.texts.config import EmbeddingConfig, PoolingType, settle
from genai_layer.texts.embedding import TextEmbeddingPipeline
from genai_layer.texts.pooling import modes_of, normalized, pool
from genai_layer.vision.embedded_prompt import EmbeddedPrompt
from genai_layer.vision.model_source import ModelsInFolder, split_properties
from genai_layer.vision.prompt_embedder import pad_ids
from genai_layer.vision.prompt_tags import IMAGE, VIDEO
from genai_layer.vision.shaped_model import ShapedModel, TextEmbeddings
from genai_layer.vision.visuals import (
    ImageLike,
    Video,
    VideoLike,
    VideoMetadata,
    all_frames,
    chosen_frames,
    read_images,
    read_metadata,
)


@dataclass(frozen=True, slots=True)
class EmbedCall:
    """Arguments of one call."""

    texts: list[str]
    images: Sequence[ImageLike]
    videos: Sequence[VideoLike]
    metadata: Sequence[VideoMetadata]
    """Facts about all videos, or empty."""
    prompt: str | None
    """Instruction for the model."""


class TextModel:
    """Model of texts; arguments and errors as for ``EmbeddingPipeline``."""

    def __init__(
        self,
        folder: Path,
        device: str,
        config: EmbeddingConfig | None,
        core: Core | None,
        properties: Mapping[str, Any],
    ) -> None:
        self._pipeline = TextEmbeddingPipeline(folder, device, config, core=core, **properties)

    def embed(self, call: EmbedCall) -> Array:
        """Return embeddings f32 [texts, width].

        Raises:
            PromptError: there are images or videos, or a text has no tokens.
            RuntimeFailure: the runtime failed.
        """
        if len(call.images) or len(call.videos) or len(call.metadata):
            raise PromptError(
                "This model does not support image/video input; pass texts only, or export a model "
                "of the family qwen3_vl"
            )
        if not call.texts:
            return np.zeros((0, 0), np.float32)
        if call.prompt is None:
            vectors = self._pipeline.embed_documents(call.texts)
        else:
            vectors = self._pipeline.embed(call.texts, call.prompt)
        return np.array(vectors, np.float32)


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
        vectors = pool(states, mask, modes_of(self._config.pooling_type))
        return (normalized(vectors) if self._config.normalize else vectors)[0]


LANGUAGE_MODEL = "openvino_language_model.xml"

_NPU_DEFAULTS = {"MIN_RESPONSE_LEN": 1, "NPUW_LLM_SHARED_HEAD": "NO"}
"""Nothing is generated, and there is no LM head."""


class VisualModel:
    """Qwen3-VL as an embedding model; arguments and errors as for ``EmbeddingPipeline``."""

    def __init__(
        self,
        folder: Path,
        device: str,
        config: EmbeddingConfig | None,
        core: Core | None,
        properties: Mapping[str, Any],
    ) -> None:
        if config is None:
            properties = {"pooling_type": PoolingType.LAST_TOKEN, **properties}
        config, rest = settle(EmbeddingConfig, config, properties)
        language = others = read_properties(for_device(rest, device))
        self._lengths: StaticLengths | None = None
        if device == "NPU":
            if config.pooling_type is not PoolingType.LAST_TOKEN:
                raise ConfigError(
                    f"pooling_type = {config.pooling_type.name}: on NPU, a Qwen3-VL returns the "
                    "last token's state only; set LAST_TOKEN, or use device CPU"
                )
            language, others, self._lengths = split_properties({**_NPU_DEFAULTS, **language})
        settings = Folder.read(folder)
        tokenizer = read_tokenizer(folder)
        core = load_core(device) if core is None else core
        source = ModelsInFolder(folder, "feature-extraction")

        def shaped(part: str) -> ShapedModel:
            return ShapedModel(core, part, source.model(core, part), device, others)

        self._settings = settings
        self._prompts = EmbeddingPrompts(tokenizer)
        self._pads = pad_ids(tokenizer)
        table = PositionTable.read(shaped("vision_embeddings_pos"), settings.table_side)
        models = shaped("vision_embeddings"), shaped("vision_embeddings_merger")
        self._encoder = GroupEncoder(*models, table, settings)
        self._text = TextEmbeddings(shaped("text_embeddings"))
        model = source.model(core, "language")
        self._states = HiddenStates(core, model, device, language, config)

    def embed(self, call: EmbedCall) -> Array:
        """Return embeddings f32 [texts, width]; errors as for ``EmbeddingPipeline.embed``."""
        images, videos = read_images(call.images), all_frames(call.videos)
        visuals = [Visual(IMAGE, self._encoder.encode(IMAGE, image[None])) for image in images]
        visuals += self._encode_videos(videos, call.metadata)
        found = [self._embed_text(text, visuals, call.prompt) for text in call.texts]
        return np.stack(found) if found else np.zeros((0, 0), np.float32)

    def _encode_videos(
        self, videos: Sequence[Video], metadata: Sequence[VideoMetadata]
    ) -> list[Visual]:
        visuals: list[Visual] = []
        for video, facts in zip(videos, read_metadata(metadata, len(videos)), strict=True):
            taken = frames_to_take(len(video), facts, self._settings.sampling)
            group = self._settings.patchers[VIDEO].temporal_patch_size
            seconds = seconds_of(taken, facts.fps, group)
            groups = self._encoder.encode(VIDEO, chosen_frames(video, taken))
            visuals.append(Visual(VIDEO, groups, seconds))
        return visuals

    def _embed_text(self, text: str, visuals: Sequence[Visual], prompt: str | None) -> Array:
        ids, groups = self._prompts.encode(text, visuals, prompt)
        if self._lengths is not None:
            self._lengths.check_prompt(len(ids))
        inputs = EmbeddedPrompt(ids, groups, self._pads, 1, self._text)(np.array([ids]), 0)
        return self._states.pooled({**inputs, **self._features(ids, groups, inputs)})

    def _features(
        self, ids: Sequence[int], groups: Sequence[EncodedGroup], inputs: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Return the inputs that add features to hidden states; a text alone has a row of zeros."""
        width = inputs["inputs_embeds"].shape[2]
        features = np.zeros((self._settings.levels, 1, width), np.float32)
        if groups:
            features = np.concatenate([group.features for group in groups], axis=1)
        return {
            "visual_pos_masks": np.isin([ids], [*self._pads.values()]),
            "deepstack_visual_embeds": features,
        }
