r"""Tokens that SpecialTokensSplit finds first: a pattern ``(a|b)|(?:\s*)(c)(?:\s*)``.

Source: openvino_tokenizers 2026.4, tokenizer_pipeline.py; docs/reference/genai.md#tokenizer-models.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from genai_layer.openvino_tokenizer.graph import Graph, Node

_SPACES = r"(?:\s*)"
_GROUP = re.compile(
    r"(?P<left>\(\?:\\s\*\))?\((?P<tokens>(?:[^\\()|]|\\.)+(?:\|(?:[^\\()|]|\\.)+)*)\)"
    r"(?P<right>\(\?:\\s\*\))?(?:\||\Z)",
    re.DOTALL,
)
_TOKEN = re.compile(r"(?:[^\\|]|\\.)+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """Text that is always one token; it may take the spaces before and after it."""

    text: str
    left: bool
    right: bool


def special_tokens(graph: Graph, node: Node) -> list[SpecialToken]:
    """Return the tokens of a SpecialTokensSplit.

    Raises:
        ModelError: the pattern has another form, or finds a token before a longer one.
    """
    pattern = graph.text(node, len(node.ports) - 1)
    found: list[SpecialToken] = []
    place = 0
    while place < len(pattern):
        match = _GROUP.match(pattern, place)
        if match is None:
            raise graph.unsupported(node, f"the pattern {pattern[place : place + 40]!r}")
        for text in unquoted(match["tokens"]):
            found.append(SpecialToken(text, bool(match["left"]), bool(match["right"])))
        place = match.end()
    edges = [(token.text[0].isspace(), token.text[-1].isspace()) for token in found]
    if (any(token.right for token in found) and any(first for first, _ in edges)) or (
        any(token.left for token in found) and any(last for _, last in edges)
    ):
        raise graph.unsupported(node, "one token takes spaces, another begins or ends with them")
    earlier: set[str] = set()
    for token in found:  # tokenizers finds the longest, the op the first
        if any(token.text[:length] in earlier for length in range(1, len(token.text))):
            raise graph.unsupported(node, f"a token that begins {token.text!r} precedes it")
        earlier.add(token.text)
    return found


def unquoted(alternatives: str) -> list[str]:
    r"""Return the texts of ``a|b\|c``."""
    return [re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL) for text in _TOKEN.findall(alternatives)]
