r"""Pre-tokenizers: RegexSplit as ``tokenizers.pre_tokenizers``, SpecialTokensSplit, Metaspace.

The op merges a match with its neighbour unlike tokenizers, and can fail; so merging is supported
only for a single character that the normalizers have removed, or with what follows it.

SpecialTokensSplit finds its tokens first, by a pattern ``(a|b)|(?:\s*)(c)(?:\s*)``. Metaspace is a
space before a text's first word alone, which a RegexNormalization adds before all other steps.

Source: openvino_tokenizers 2026.4, tokenizer_pipeline.py, update_metaspace_step_with_special_tokens
in it; docs/reference/genai.md#tokenizer-models.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokenizers import Regex, pre_tokenizers

from genai_layer.openvino_tokenizer.graph import Graph, Node
from genai_layer.openvino_tokenizer.normalizers import arguments
from genai_layer.openvino_tokenizer.patterns import translate

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


_BEHAVIOURS = {"remove": "removed", "isolate": "isolated", "contiguous": "contiguous"}
_HAN = r"([\p{Han}])"


def splits(graph: Graph, steps: Sequence[Node]) -> list[Any]:
    """Return the pre-tokenizers of all steps before the model.

    Raises:
        ModelError: a pattern or an attribute is not supported.
    """
    found = [
        part for step in steps if step.type == "RegexSplit" for part in _split(graph, step, steps)
    ]
    return [_split_han(graph, step, steps) for step in steps if is_han(graph, step)] + found


def is_han(graph: Graph, node: Node) -> bool:
    """Return whether a RegexNormalization puts spaces around Chinese characters.

    Raises:
        ModelError: only the first match is replaced.
    """
    return node.type == "RegexNormalization" and arguments(graph, node) == (_HAN, " $1 ")


def _split(graph: Graph, node: Node, steps: Sequence[Node]) -> list[Any]:
    pattern = graph.text(node, len(node.ports) - 1)
    behaviour = node.data.get("behaviour", "remove")
    if node.data.get("max_splits", "-1") != "-1":
        raise graph.unsupported(node, "max_splits is not supported")
    if behaviour.startswith("merged"):
        return _merged(graph, node, pattern, steps)
    if behaviour not in _BEHAVIOURS:
        raise graph.unsupported(node, f"behaviour={behaviour!r} is not supported")
    try:
        regex = Regex(translate(pattern))
    except Exception as error:  # the library raises plain Exception
        raise graph.unsupported(node, f"the pattern {pattern!r}: {error}") from None
    return [pre_tokenizers.Split(regex, _BEHAVIOURS[behaviour], node.flag("invert"))]


def _merged(graph: Graph, node: Node, pattern: str, steps: Sequence[Node]) -> list[Any]:
    """Return the pre-tokenizers that merge a character with its neighbour."""
    behaviour = node.data["behaviour"]
    literal = len(pattern) == 1 and pattern not in r"\^$.|?*+()[]{}" and not node.flag("invert")
    replaced = [arguments(graph, step)[0] for step in steps if step.type == "RegexNormalization"]
    if literal and behaviour == "mergedwithprevious" and pattern in replaced:
        return []
    if literal and behaviour == "mergedwithnext":
        # The op drops a match that another one follows.
        dropped = Regex(f"{pattern}(?={pattern})")
        return [
            pre_tokenizers.Split(dropped, "removed"),
            pre_tokenizers.Split(pattern, "merged_with_next"),
        ]
    raise graph.unsupported(node, f"behaviour={behaviour!r} of the pattern {pattern!r}")


def _split_han(graph: Graph, node: Node, steps: Sequence[Node]) -> Any:
    """Return the pre-tokenizer for spaces around Chinese characters.

    Raises:
        ModelError: the spaces would stay, as no split removes them.
    """
    first = next((step for step in steps if step.type == "RegexSplit"), node)
    if first.data.get("behaviour") != "remove" or graph.text(first, len(first.ports) - 1) != r"\s+":
        raise graph.unsupported(node, r"no RegexSplit removes the spaces, \s+, behind it")
    return pre_tokenizers.Split(Regex(translate(r"\p{Han}")), "isolated")


_FIRST = re.compile(
    r"\(\^\)\(\(\?!(?P<tokens>.+)\| \|\$\)\|\(\?=\[\\r\\n\\t\\f\\v\]\)\)", re.DOTALL
)


def is_metaspace_first(steps: list[Node]) -> bool:
    """Return whether a text's beginning is changed before special tokens are found."""
    types = [step.type for step in steps[:2]]
    return types == ["RegexNormalization", "SpecialTokensSplit"]


def metaspace(graph: Graph, steps: list[Node], specials: list[SpecialToken]) -> Any:
    """Return the pre-tokenizer that adds the space.

    Raises:
        ModelError: the pattern has another form, or other steps change the text before it.
    """
    node, others = steps[0], steps[2:]
    pattern, content = (graph.text(node, len(node.ports) - place) for place in (2, 1))
    match = _FIRST.fullmatch(pattern)
    if any(token.left or token.text[0].isspace() for token in specials):
        raise graph.unsupported(node, "a special token may begin with spaces")
    known = match is not None and set(unquoted(match["tokens"])) == {t.text for t in specials}
    # Only a replacement of spaces may follow.
    spaces = [
        step.type == "RegexNormalization" and arguments(graph, step) == (" ", content[:1])
        for step in others
        if step.type != "RegexSplit"
    ]
    if not known or len(content) != 3 or content[1:] != "$2" or spaces != [True]:
        raise graph.unsupported(node, f"the pattern {pattern[:60]!r} with {content!r}")
    return pre_tokenizers.Metaspace(content[0], prepend_scheme="first", split=False)
