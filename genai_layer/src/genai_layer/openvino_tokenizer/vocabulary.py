"""Vocabulary of a tokenizer model, as tokenizers has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from genai_layer.openvino_tokenizer.graph import Graph, Node


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
