"""Special tokens around texts: CombineSegments as a post-processor, for one text and for two.

Source: openvino_tokenizers 2026.4, tokenizer_pipeline.py, and utils.py for the rt_info of pairs.
"""

from __future__ import annotations

import json
from typing import Any

from tokenizers import processors

from genai_layer.openvino_tokenizer.graph import Graph, Node

_PAIRS = "processed_post_processor_template"


def post_processor(graph: Graph, tokens: dict[int, str]) -> Any:
    """Return the post-processor.

    Raises:
        ModelError: the segments have another form, or a token is not in the vocabulary.
    """
    node = graph.only("CombineSegments")
    single = _single(graph, node)
    pair = _pair(graph, node) or [*single, (-2, 1)]
    numbers = sorted({number for number, _ in single + pair if number >= 0})
    if any(number not in tokens for number in numbers):
        raise graph.unsupported(node, f"tokens {numbers} are not all in the vocabulary")
    specials = [
        {"id": f"s{number}", "ids": [number], "tokens": [tokens[number]]} for number in numbers
    ]
    return processors.TemplateProcessing(
        single=_template(single), pair=_template(pair), special_tokens=specials
    )


def _template(parts: list[tuple[int, int]]) -> list[str]:
    """Return the template of ids, -1 and -2 for the texts, with segment numbers."""
    names = {-1: "$A", -2: "$B"}
    return [f"{names.get(number, f's{number}')}:{kind}" for number, kind in parts]


def _single(graph: Graph, node: Node) -> list[tuple[int, int]]:
    kinds = graph.array(node, len(node.ports) - 1).tolist()
    found: list[tuple[int, int]] = []
    if len(node.ports) != 3 * len(kinds) + 1:
        raise graph.unsupported(node, "the segments and their numbers differ")
    for index, kind in enumerate(kinds):
        if not graph.is_constant(node, 3 * index):
            found.append((-1, kind))
            continue
        ids = graph.array(node, 3 * index + 2).tolist()
        if min(ids, default=0) < 0:
            raise graph.unsupported(node, "an id is negative")
        if (graph.integer(node, 3 * index), graph.integer(node, 3 * index + 1)) != (0, len(ids)):
            raise graph.unsupported(node, "special tokens are not added by default")
        found += [(number, kind) for number in ids]
    if [number for number, _ in found].count(-1) != 1 or min(kinds, default=0) < 0:
        raise graph.unsupported(node, "one text is supported")
    return found


def _pair(graph: Graph, node: Node) -> list[tuple[int, int]]:
    """Return the form of a pair of texts that the rt_info gives; empty if it gives none."""
    given = graph.rt_info.get(_PAIRS)
    if given is None:
        return []
    try:
        pair = json.loads(given)["pair"]
        found = [(int(n), int(kind)) for n, kind in zip(pair["ids"], pair["type_ids"], strict=True)]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise graph.error(f"rt_info {_PAIRS} is broken: {error}") from None
    if sorted(n for n, _ in found if n < 0) != [-2, -1] or any(kind < 0 for _, kind in found):
        raise graph.error(f"rt_info {_PAIRS} is broken: two texts are expected")
    return found
