"""A query and documents in, the documents that fit best out.

Source: openvino_genai.TextRerankPipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from genai_layer.errors import ModelError, PromptError
from genai_layer.exclusive import Exclusive
from genai_layer.json_file import read_object
from genai_layer.model_folder import read_tokenizer
from genai_layer.runtime import Array, Core
from genai_layer.texts import config as configs
from genai_layer.texts.compiled import TextModel
from genai_layer.texts.encoding import Text, TextEncoder
from genai_layer.tokenizer import Tokenizer

_DECODER = "qwen3"
"""The model_type whose queries and documents are joined as text, and that may say yes or no."""

_ANSWERS = ("no", "yes")


class TextRerankPipeline(Exclusive):
    """Ranks documents by how well they fit a query.

    Args:
        models_path: a folder with ``openvino_model.xml`` and ``tokenizer.json``: a cross-encoder,
            or a Qwen3 reranker, whose query and documents must be written as it wants them.
        device: "NPU", "CPU" …
        config: the parameters; or give them by keyword.
        core: a runtime, instead of the one that the device names.
        properties: parameters, and, upper case, properties of the runtime. On NPU a text has
            max_length tokens at most, or MAX_PROMPT_LEN.

    Raises:
        ConfigError: a parameter is wrong, or given twice.
        ModelError, PropertyError, RuntimeFailure: as ``LLMPipeline``.
    """

    Config = configs.RerankConfig

    def __init__(
        self,
        models_path: str | Path,
        device: str,
        config: configs.RerankConfig | None = None,
        *,
        core: Core | None = None,
        **properties: Any,
    ) -> None:
        folder = Path(models_path)
        self._config, rest = configs.settle(configs.RerankConfig, config, properties)
        tokenizer = read_tokenizer(folder)
        self._joins = read_object(folder / "config.json").get("model_type") == _DECODER
        self._answers = _answers(tokenizer) if self._joins else []
        self._encoder = TextEncoder(tokenizer, self._config, tokenizer.model_max_length)
        length = self._config.max_length
        self._model = TextModel(folder, device, rest, "NPUW_TEXT_RERANK", length, core)
        self._running = False

    def rerank(self, query: str, documents: Sequence[str]) -> list[tuple[int, float]]:
        """Give the numbers and scores of the top_n best documents, the best first.

        Raises:
            PromptError: there is no document.
            RuntimeFailure: the runtime cannot read them; on NPU one may be too long.
        """
        self.start_rerank_async(query, documents)
        return self.wait_rerank()

    def start_rerank_async(self, query: str, documents: Sequence[str]) -> None:
        """Begin what ``wait_rerank`` ends."""
        texts: list[Text] = [
            query + document if self._joins else (query, document) for document in documents
        ]
        self._model.start(self._encoder.encode(texts))
        self._running = True

    def wait_rerank(self) -> list[tuple[int, float]]:
        """Give the ranks of what was begun."""
        if not self._running:
            raise PromptError("nothing was begun")
        scores = self._scores(self._model.wait("logits"))
        # Of equal scores the first document comes first.
        best = np.argsort(-scores, kind="stable")[: self._config.top_n]
        return [(int(number), float(scores[number])) for number in best]

    def _scores(self, logits: Array) -> Array:
        """From 0 to 1, f32 [texts].

        Raises:
            ModelError: the model gives something else than scores.
        """
        if logits.ndim == 3:  # a language model: of the last token
            if not self._answers:
                raise ModelError("a language model that ranks must be Qwen3 (config.json)")
            return _softmax(logits[:, -1, self._answers])[:, 1]
        if logits.ndim == 2 and logits.shape[1] == 1:
            return 1 / (1 + np.exp(-logits[:, 0]))
        if logits.ndim == 2:
            return _softmax(logits)[:, 1]
        raise ModelError(f"logits {list(logits.shape)} are no scores of texts")


def _softmax(values: Array) -> Array:
    powers = np.exp(values - values.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def _answers(tokenizer: Tokenizer) -> list[int]:
    """The tokens whose logits count.

    Raises:
        ModelError: there are none.
    """
    known = tokenizer.get_vocab()
    missing = [word for word in _ANSWERS if word not in known]
    if missing:
        raise ModelError(f"the tokenizer has no token {' or '.join(missing)}, which Qwen3 says")
    return [known[word] for word in _ANSWERS]
