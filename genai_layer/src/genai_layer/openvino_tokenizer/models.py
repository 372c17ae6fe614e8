"""Vocabularies: BPETokenizer, WordpieceTokenizer and UnigramTokenizer as ``tokenizers.models``.

BPE: The vocabulary is of bytes, if it has all of them, else of characters. In the op, a token that
no merge makes is found before merging; here it is rejected, unless a split separates it.

Source: openvino_tokenizers 2026.4, tokenizer_pipeline.py, BPETokenizationStep in it; measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tokenizers import models

from genai_layer.openvino_tokenizer.graph import Graph, Node
from genai_layer.token_names import FALLBACK_TOKENS, byte_level_bytes, byte_level_token


@dataclass(slots=True)
class Vocabulary:
    """The tokens of a model, and the model.

    Attributes:
        ids: the id of each token, by the token's text.
        build: creates the model; the library raises plain Exception if the vocabulary is broken.
        is_bytes: whether the characters of tokens stand for bytes.
        unmerged: texts of the tokens that have several characters and no merge.
    """

    ids: dict[str, int]
    build: Callable[[], Any]
    is_bytes: bool = False
    unmerged: set[str] = field(default_factory=set[str])


def by_text(graph: Graph, node: Node, tokens: dict[int, str]) -> dict[str, int]:
    """Return the ids of tokens; empty texts fill gaps between ids.

    Raises:
        ModelError: two tokens have the same text.
    """
    ids: dict[str, int] = {}
    for number, token in tokens.items():
        if token and ids.setdefault(token, number) != number:
            raise graph.unsupported(node, f"the token {token!r} has two ids")
    return ids


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


_BYTES = frozenset(bytes([byte]) for byte in range(256))


def bpe(graph: Graph, node: Node) -> Vocabulary:
    """Return the vocabulary of a BPETokenizer.

    Raises:
        ModelError: the op does something that tokenizers cannot do exactly.
    """
    for name in ("suffix_indicator", "end_suffix"):
        if node.data.get(name):
            raise graph.unsupported(node, f"{name}={node.data[name]!r} is not supported")
    tokens = graph.strings(node, 5)
    merges, place = _merges(graph, node)
    added = _added(graph, node, place, len(tokens))
    is_bytes = set(tokens) >= _BYTES

    def text(token: bytes) -> str:
        return byte_level_token(token) if is_bytes else graph.decoded(node, token)

    listed = {i: text(token) for i, token in enumerate(tokens) if i not in added}
    ids = by_text(graph, node, {**listed, **added})
    pairs = [(text(left), text(right)) for left, right in merges]
    fallback = node.flag("byte_fallback")
    if not is_bytes and not (fallback and all(token in ids for token in FALLBACK_TOKENS)):
        raise graph.unsupported(node, "characters outside of the vocabulary are not bytes")
    unmerged = {token for token in listed.values() if len(token) > 1}
    unmerged |= {text(token.encode()) for token in added.values()}
    unmerged -= {left + right for left, right in pairs}
    unmerged -= set(FALLBACK_TOKENS if fallback else ())
    if is_bytes:
        unmerged = {byte_level_bytes(t).decode(errors="replace") for t in unmerged}
    unknown = node.data.get("unk_token")

    def build() -> Any:
        return models.BPE(
            vocab=ids,
            merges=pairs,
            unk_token=unknown if unknown in ids else None,
            fuse_unk=node.flag("fuse_unk"),
            byte_fallback=fallback,
        )

    return Vocabulary(ids, build, is_bytes, unmerged)


def _merges(graph: Graph, node: Node) -> tuple[list[tuple[bytes, bytes]], int]:
    """Return the merges, and the index of the input behind them."""
    if len(node.ports) in (14, 18):
        left, right = graph.strings(node, 8), graph.strings(node, 11)
        if len(left) != len(right):
            raise graph.unsupported(node, "the parts of the merges differ in number")
        return list(zip(left, right, strict=True)), 14
    if len(node.ports) not in (11, 15):
        raise graph.unsupported(node, f"{len(node.ports)} inputs are not supported")
    found = [merge.split(b" ") for merge in graph.strings(node, 8)]
    if any(len(parts) != 2 for parts in found):
        raise graph.unsupported(node, "a merge does not have two parts")
    return [(left, right) for left, right in found], 11


def _added(graph: Graph, node: Node, place: int, count: int) -> dict[int, str]:
    """Return the texts of added tokens, by id; the vocabulary may have other bytes for them."""
    if len(node.ports) == place:
        return {}
    texts = [graph.decoded(node, text) for text in graph.strings(node, place)]
    numbers = graph.array(node, place + 3).tolist()
    if len(texts) != len(numbers) or any(not 0 <= number < count for number in numbers):
        raise graph.unsupported(node, "an added token has no id in the vocabulary")
    return dict(zip(numbers, texts, strict=True))
