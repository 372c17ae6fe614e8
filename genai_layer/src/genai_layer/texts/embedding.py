"""Text embedding pipeline.

Source: openvino_genai.TextEmbeddingPipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from genai_layer.checked import checked
from genai_layer.errors import PromptError
from genai_layer.exclusive import Exclusive
from genai_layer.model_folder import read_tokenizer
from genai_layer.model_kinds import check_reader
from genai_layer.npu import imports_blob
from genai_layer.runtime import Array, Core
from genai_layer.texts import config as configs
from genai_layer.texts.compiled import EncodedTexts, TextEncoder, TextModel, TextTask
from genai_layer.texts.pooling import normalized, pool
from genai_layer.texts.sentence_files import complete

_TASK = TextTask("NPUW_TEXT_EMBED", "last_hidden_state", "TextEmbeddingPipeline")


class TextEmbeddingPipeline(Exclusive):
    """Pipeline that computes embeddings of texts.

    Args:
        models_path: a folder with ``openvino_model.xml`` and ``tokenizer.json``.
        device: "NPU", "CPU" …
        config: the parameters; or pass them by keyword. If the folder has sentence-transformers'
            ``modules.json``, pooling, normalisation, maximum length and prompts that are not set
            here come from its files.
        core: a runtime, instead of the device's.
        properties: parameters and, in upper case, properties of the runtime. On NPU, texts have at
            most max_length or MAX_PROMPT_LEN tokens.

    Raises:
        ConfigError: a parameter is invalid, or given twice.
        ModelError: see ``LLMPipeline``; or those files have a setting that is not supported.
        PropertyError, RuntimeFailure: see ``LLMPipeline``.
    """

    Config = configs.EmbeddingConfig
    PoolingType = configs.PoolingType

    @checked
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
        given, rest = configs.settle(configs.EmbeddingConfig, config, properties)
        check_reader(folder, _TASK.pipeline, imports_blob(rest))
        tokenizer = read_tokenizer(folder)
        self._config, self._modes = complete(given, folder, tokenizer.model_max_length)
        self._encoder = TextEncoder(tokenizer, self._config)
        lengths = given.max_length, self._config.max_length
        self._model = TextModel(folder, device, rest, _TASK, lengths, core)
        self._running: EncodedTexts | None = None
        self.read_tokens = 0
        """Tokens of the last call's texts. Ours."""

    @checked
    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the embedding of each text, prefixed with embed_instruction.

        Raises:
            PromptError: the list is empty, a text has no tokens, or the count is not batch_size.
            PromptTooLong: a text is too long on NPU.
            RuntimeFailure: the runtime cannot read the texts.
        """
        self.start_embed_documents_async(texts)
        return self.wait_embed_documents()

    @checked
    def embed(self, texts: Sequence[str], prompt: str) -> list[list[float]]:
        """Return the embedding of each text, prefixed with the prompt; errors as above."""
        self._start([prompt + text for text in texts])
        return self.wait_embed_documents()

    @checked
    def embed_query(self, text: str) -> list[float]:
        """Return the embedding of a query, prefixed with query_instruction; errors as above."""
        self.start_embed_query_async(text)
        return self.wait_embed_query()

    @checked
    def start_embed_documents_async(self, texts: Sequence[str]) -> None:
        """Begin to embed documents; ``wait_embed_documents`` returns the embeddings."""
        before = self._config.embed_instruction or ""
        self._start([before + text for text in texts])

    def wait_embed_documents(self) -> list[list[float]]:
        """Return the embeddings of the documents that were started."""
        return self._wait().tolist()

    @checked
    def start_embed_query_async(self, text: str) -> None:
        """Begin to embed a query; ``wait_embed_query`` returns the embedding."""
        self._start([(self._config.query_instruction or "") + text])

    def wait_embed_query(self) -> list[float]:
        """Return the embedding of the query that was started."""
        return self._wait()[0].tolist()

    def _start(self, texts: Sequence[str]) -> None:
        wanted = self._config.batch_size
        if wanted is not None and len(texts) != wanted:
            raise PromptError(f"batch_size = {wanted}: the call has {len(texts)} texts")
        encoded = self._encoder.encode(texts)
        self._model.start(encoded)
        self._running = encoded
        self.read_tokens = int(encoded.mask.sum())

    def _wait(self) -> Array:
        if self._running is None:
            raise PromptError("nothing to wait for; call a start_embed_… method first")
        hidden = self._model.wait()
        vectors = pool(hidden, self._running.mask, self._modes)
        return normalized(vectors) if self._config.normalize else vectors
