"""A space before a text's first word alone, which a RegexNormalization adds before all other steps.

Source: openvino_tokenizers 2026.4, update_metaspace_step_with_special_tokens in
tokenizer_pipeline.py.
"""

from __future__ import annotations

import re
from typing import Any

from tokenizers import pre_tokenizers

from genai_layer.openvino_tokenizer.graph import Graph, Node
from genai_layer.openvino_tokenizer.normalizers import arguments
from genai_layer.openvino_tokenizer.special_tokens import SpecialToken, unquoted

_FIRST = re.compile(
    r"\(\^\)\(\(\?!(?P<tokens>.+)\| \|\$\)\|\(\?=\[\\r\\n\\t\\f\\v\]\)\)", re.DOTALL
)


def is_first(steps: list[Node]) -> bool:
    """Return whether a text's beginning is changed before special tokens are found."""
    types = [step.type for step in steps[:2]]
    return types == ["RegexNormalization", "SpecialTokensSplit"]


def pre_tokenizer(graph: Graph, steps: list[Node], specials: list[SpecialToken]) -> Any:
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
