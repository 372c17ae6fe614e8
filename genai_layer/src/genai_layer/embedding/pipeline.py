"""Embeddings of texts, images and videos.

How it works. A folder with a language model that reads embeddings is a Qwen3-VL: images and videos
become tokens of the text, as for ``VLMPipeline``, and the last hidden state is the embedding. Other
folders are models of texts, as for ``TextEmbeddingPipeline``.

Source: openvino_genai.EmbeddingPipeline and EmbedResult,
docs/reference/genai.md#embeddings-of-images; the README lists deliberate differences.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genai_layer.checked import checked
from genai_layer.embedding.models import LANGUAGE_MODEL, EmbedCall, TextModel, VisualModel
from genai_layer.exclusive import Exclusive, one_at_a_time
from genai_layer.files import is_file
from genai_layer.model_kinds import check_reader
from genai_layer.npu import imports_blob
from genai_layer.runtime import Core
from genai_layer.tensor import HasData, Tensor
from genai_layer.texts.config import EmbeddingConfig
from genai_layer.vision.visuals import ImageLike, VideoLike, VideoMetadata


@dataclass(slots=True)
class EmbedResult:
    """Embeddings of the texts of a call."""

    embeddings: HasData
    """Tensor f32 [texts, width]."""


class EmbeddingPipeline(Exclusive):
    """Pipeline that computes embeddings for texts, with images and videos.

    Args:
        models_path: a folder that optimum-cli exported with --task feature-extraction: a model of
            texts, or a Qwen3-VL.
        device: "NPU", "CPU" …
        text_embedding_config: the parameters of ``TextEmbeddingPipeline``; or pass them by keyword.
            Only pooling_type, by default LAST_TOKEN, and normalize matter to a Qwen3-VL.
        core: a runtime, instead of the device's.
        properties: parameters and, in upper case, properties of the runtime. On NPU, texts with
            their visuals have at most MAX_PROMPT_LEN tokens, by default 1024.

    Raises:
        ConfigError: a parameter is invalid, or given twice; or a Qwen3-VL on NPU has another
            pooling_type than LAST_TOKEN.
        ModelError, PropertyError, RuntimeFailure: see ``LLMPipeline``.
    """

    @checked
    def __init__(
        self,
        models_path: str | bytes | os.PathLike[str],
        device: str,
        *,
        text_embedding_config: EmbeddingConfig | None = None,
        core: Core | None = None,
        **properties: Any,
    ) -> None:
        folder = Path(os.fsdecode(models_path))
        check_reader(folder, "EmbeddingPipeline", imports_blob(properties))
        visual = is_file(folder / LANGUAGE_MODEL)
        make = VisualModel if visual else TextModel
        self._model = make(folder, device, text_embedding_config, core, properties)

    @one_at_a_time
    @checked
    def embed(
        self,
        text: str | Sequence[str] = "",
        images: Sequence[ImageLike] = (),
        videos: Sequence[VideoLike] = (),
        videos_metadata: Sequence[VideoMetadata] = (),
        *,
        embedding_prompt: str | None = None,
    ) -> EmbedResult:
        """Return the embedding of each text, together with all images and videos.

        Args:
            text: a text, or several. Tags ``<ov_genai_image_0>`` and ``<ov_genai_video_0>`` mark
                places; without tags, images and then videos follow the text.
            images: u8 [H, W, C] or [N, H, W, C], with 1, 3 or 4 channels.
            videos: u8 [frames, H, W, 3].
            videos_metadata: of each video, or empty.
            embedding_prompt: instruction; the chat template's system message or, without a
                template, a prefix of each text.

        Returns:
            Embeddings f32 [texts, width]; [0, 0] for an empty list.

        Raises:
            BusyError: another call runs.
            PromptError: an argument is wrong, a text has no tokens or too many, the model has no
                images and videos, or tags and visuals do not match.
            RuntimeFailure: the runtime failed.
        """
        texts = [text] if isinstance(text, str) else [*text]
        call = EmbedCall(texts, images, videos, videos_metadata, embedding_prompt)
        return EmbedResult(Tensor(self._model.embed(call)))
