"""WordpieceTokenizer and UnigramTokenizer as ``tokenizers.models``.

Source: openvino_tokenizers 2026.4, tokenizer_pipeline.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tokenizers import models

from genai_layer.openvino_tokenizer.graph import Graph, Node
from genai_layer.openvino_tokenizer.vocabulary import Vocabulary, by_text


def wordpiece(graph: Graph, node: Node) -> Vocabulary:
    """Return the vocabulary of a WordpieceTokenizer.

    Raises:
        ModelError: the constants are broken.
    """
    tokens = [graph.decoded(node, token) for token in graph.strings(node, 5)]
    unknown = graph.integer(node, 8)
    if not 0 <= unknown < len(tokens):
        raise graph.unsupported(node, f"the unknown token {unknown} is outside of the vocabulary")
    ids = by_text(graph, node, dict(enumerate(tokens)))
    longest = graph.number(node, "max_bytes_per_word", 100)

    def build() -> Any:
        return models.WordPiece(
            vocab=ids,
            unk_token=tokens[unknown],
            max_input_chars_per_word=longest,
            continuing_subword_prefix=node.data.get("suffix_indicator", "##"),
        )

    return Vocabulary(ids, build)


def unigram(graph: Graph, node: Node) -> Vocabulary:
    """Return the vocabulary of a UnigramTokenizer.

    Raises:
        ModelError: the constants are broken, or unknown characters are not joined.
    """
    tokens = [graph.decoded(node, token) for token in graph.strings(node, 5)]
    scores = graph.array(node, 8).astype(np.float64)
    unknown = graph.number(node, "unk_token_id", -1)
    if not node.flag("fuse_unk", default=True):
        raise graph.unsupported(node, "fuse_unk=false is not supported")
    if not 0 <= unknown < len(tokens) == len(scores) or not np.isfinite(scores).all():
        raise graph.unsupported(node, "the scores or the unknown token do not fit the vocabulary")
    ids = by_text(graph, node, dict(enumerate(tokens)))
    listed: list[tuple[str, float]] = list(zip(tokens, scores.tolist(), strict=True))
    return Vocabulary(ids, lambda: models.Unigram(listed, unknown, node.flag("byte_fallback")))
