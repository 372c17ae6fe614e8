"""Pre-tokenizers: RegexSplit as ``tokenizers.pre_tokenizers``.

The op merges a match with its neighbour unlike tokenizers, and can fail; so merging is supported
only for a single character that the normalizers have removed, or with what follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenizers import Regex, pre_tokenizers

from genai_layer.openvino_tokenizer.graph import Graph, Node
from genai_layer.openvino_tokenizer.normalizers import arguments
from genai_layer.openvino_tokenizer.patterns import translate

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
