"""Texts in, embeddings out.

Source: openvino_genai.TextEmbeddingPipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from genai_layer.errors import PromptError
from genai_layer.exclusive import Exclusive
from genai_layer.model_folder import read_tokenizer
from genai_layer.runtime import Array, Core
from genai_layer.texts import config as configs
from genai_layer.texts.compiled import TextModel
from genai_layer.texts.encoding import EncodedTexts, TextEncoder
from genai_layer.texts.pooling import normalized, pool


class TextEmbeddingPipeline(Exclusive):
    """Makes vectors of texts.

    Args:
        models_path: a folder with ``openvino_model.xml`` and ``tokenizer.json``.
        device: "NPU", "CPU" …
        config: the parameters; or give them by keyword.
        core: a runtime, instead of the one that the device names.
        properties: parameters, and, upper case, properties of the runtime. On NPU a text has
            max_length tokens at most, or MAX_PROMPT_LEN.

    Raises:
        ConfigError: a parameter is wrong, or given twice.
        ModelError, PropertyError, RuntimeFailure: as ``LLMPipeline``.
    """

    Config = configs.EmbeddingConfig
    PoolingType = configs.PoolingType

    def __init__(
        self,
        models_path: str | Path,
        device: str,
        config: configs.EmbeddingConfig | None = None,
        *,
        core: Core | None = None,
        **properties: Any,
    ) -> None:
        folder = Path(models_path)
        self._config, rest = configs.settle(configs.EmbeddingConfig, config, properties)
        self._encoder = TextEncoder(read_tokenizer(folder), self._config)
        length = self._config.max_length
        self._model = TextModel(folder, device, rest, "NPUW_TEXT_EMBED", length, core)
        self._running: EncodedTexts | None = None

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Give the vector of each text; embed_instruction is put before it.

        Raises:
            PromptError: there is no text, one without tokens, or not batch_size of them.
            RuntimeFailure: the runtime cannot read them; on NPU one may be too long.
        """
        self.start_embed_documents_async(texts)
        return self.wait_embed_documents()

    def embed_query(self, text: str) -> list[float]:
        """Give the vector of a query; query_instruction is put before it. It raises the same."""
        self.start_embed_query_async(text)
        return self.wait_embed_query()

    def start_embed_documents_async(self, texts: Sequence[str]) -> None:
        """Begin what ``wait_embed_documents`` ends."""
        before = self._config.embed_instruction or ""
        self._start([before + text for text in texts])

    def wait_embed_documents(self) -> list[list[float]]:
        """Give the vectors of what was begun."""
        return self._wait().tolist()

    def start_embed_query_async(self, text: str) -> None:
        """Begin what ``wait_embed_query`` ends."""
        self._start([(self._config.query_instruction or "") + text])

    def wait_embed_query(self) -> list[float]:
        """Give the vector of what was begun."""
        return self._wait()[0].tolist()

    def _start(self, texts: Sequence[str]) -> None:
        wanted = self._config.batch_size
        if wanted is not None and len(texts) != wanted:
            raise PromptError(f"{len(texts)} texts; batch_size is {wanted}")
        encoded = self._encoder.encode(texts)
        self._model.start(encoded)
        self._running = encoded

    def _wait(self) -> Array:
        if self._running is None:
            raise PromptError("nothing was begun")
        hidden = self._model.wait("last_hidden_state")
        vectors = pool(hidden, self._running.mask, self._config.pooling_type, self._encoder.left)
        return normalized(vectors) if self._config.normalize else vectors
