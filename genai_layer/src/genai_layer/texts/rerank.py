"""Text reranking pipeline.

Source: openvino_genai.TextRerankPipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from genai_layer.checked import checked
from genai_layer.errors import ModelError, PromptError
from genai_layer.exclusive import Exclusive
from genai_layer.files import read_object
from genai_layer.long_texts import Text
from genai_layer.model_folder import read_tokenizer
from genai_layer.model_kinds import check_reader
from genai_layer.npu import imports_blob
from genai_layer.runtime import Array, Core
from genai_layer.texts import config as configs
from genai_layer.texts.compiled import TextEncoder, TextModel, TextTask
from genai_layer.tokenizer import Tokenizer

_TASK = TextTask("NPUW_TEXT_RERANK", "logits", "TextRerankPipeline")
_DECODER = "qwen3"
"""The model_type that reads query and document as one text, and whose logits rate yes and no."""

_ANSWERS = ("no", "yes")


class TextRerankPipeline(Exclusive):
    """Pipeline that ranks documents by their relevance to a query.

    Args:
        models_path: a folder with ``openvino_model.xml`` and ``tokenizer.json``: a cross-encoder,
            or a Qwen3 reranker, whose query and documents the caller writes in its format.
        device: "NPU", "CPU" …
        config: the parameters; or pass them by keyword.
        core: a runtime, instead of the device's.
        properties: parameters and, in upper case, properties of the runtime. On NPU, texts have at
            most max_length or MAX_PROMPT_LEN tokens.

    Raises:
        ConfigError: a parameter is invalid, or given twice.
        ModelError, PropertyError, RuntimeFailure: see ``LLMPipeline``.
    """

    Config = configs.RerankConfig

    @checked
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
        check_reader(folder, _TASK.pipeline, imports_blob(rest))
        tokenizer = read_tokenizer(folder)
        self._joins = read_object(folder / "config.json").get("model_type") == _DECODER
        self._answers = _answers(tokenizer) if self._joins else []
        self._encoder = TextEncoder(tokenizer, self._config, tokenizer.model_max_length)
        lengths = self._config.max_length, tokenizer.model_max_length
        self._model = TextModel(folder, device, rest, _TASK, lengths, core)
        self._running = False
        self.read_tokens = 0
        """Tokens of the last call's texts. Ours."""

    @checked
    def rerank(self, query: str, texts: Sequence[str]) -> list[tuple[int, float]]:
        """Return the indices and scores of the top_n best documents, the best first.

        Raises:
            PromptError: the list of documents is empty.
            PromptTooLong: a text is too long on NPU.
            RuntimeFailure: the runtime cannot read the texts.
        """
        self.start_rerank_async(query, texts)
        return self.wait_rerank()

    @checked
    def start_rerank_async(self, query: str, texts: Sequence[str]) -> None:
        """Begin to rank documents; ``wait_rerank`` returns the ranks."""
        joined: list[Text] = [query + text if self._joins else (query, text) for text in texts]
        encoded = self._encoder.encode(joined)
        self._model.start(encoded)
        self.read_tokens = int(encoded.mask.sum())
        self._running = True

    def wait_rerank(self) -> list[tuple[int, float]]:
        """Return the ranks of the documents that were started."""
        if not self._running:
            raise PromptError("nothing to wait for; call start_rerank_async first")
        scores = self._scores(self._model.wait())
        # Documents of equal score keep their order.
        best = np.argsort(-scores, kind="stable")[: self._config.top_n]
        return [(int(number), float(scores[number])) for number in best]

    def _scores(self, logits: Array) -> Array:
        """Convert logits to scores from 0 to 1, f32 [texts].

        Raises:
            ModelError: the output has no shape of scores.
        """
        if logits.ndim == 3:  # a language model: use the last token
            if not self._answers:
                raise ModelError("config.json: a language model that ranks must be Qwen3")
            return _softmax(logits[:, -1, self._answers])[:, 1]
        if logits.ndim == 2 and logits.shape[1] == 1:
            return 1 / (1 + np.exp(-logits[:, 0]))
        if logits.ndim == 2:
            return _softmax(logits)[:, 1]
        raise ModelError(f"logits {list(logits.shape)} are not scores [texts, 1] or [texts, 2]")


def _softmax(values: Array) -> Array:
    powers = np.exp(values - values.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def _answers(tokenizer: Tokenizer) -> list[int]:
    """Return the tokens whose logits are the scores.

    Raises:
        ModelError: the tokenizer lacks one of them.
    """
    known = tokenizer.get_vocab()
    missing = [word for word in _ANSWERS if word.encode() not in known]
    if missing:
        raise ModelError(f"the tokenizer lacks {' and '.join(missing)}, which Qwen3 rerankers need")
    return [known[word.encode()] for word in _ANSWERS]
