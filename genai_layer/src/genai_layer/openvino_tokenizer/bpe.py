"""BPETokenizer as ``tokenizers.models.BPE``.

The vocabulary is of bytes, if it has all of them, else of characters. In the op, a token that no
merge makes is found before merging; here it is rejected, unless a split separates it.

Source: openvino_tokenizers 2026.4, BPETokenizationStep in tokenizer_pipeline.py; measured.
"""

from __future__ import annotations

from typing import Any

from tokenizers import models

from genai_layer.openvino_tokenizer.graph import Graph, Node
from genai_layer.openvino_tokenizer.vocabulary import Vocabulary, by_text
from genai_layer.vocabulary import FALLBACK_TOKENS, byte_level_bytes, byte_level_token

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
