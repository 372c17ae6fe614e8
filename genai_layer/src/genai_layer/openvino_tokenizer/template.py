"""Special tokens around texts: CombineSegments as a post-processor, for one text and for two.

Truncation and padding are settings of tokenizer_config.json.

Source: openvino_tokenizers 2026.4, tokenizer_pipeline.py, and utils.py for the rt_info of pairs;
docs/reference/genai.md#tokenizer-models.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from tokenizers import processors

from genai_layer.openvino_tokenizer.graph import Graph, Node

_PAIRS = "processed_post_processor_template"


@dataclass(frozen=True, slots=True)
class Template:
    """Ids around one text and around two, with segment numbers; -1 and -2 stand for the texts."""

    single: list[tuple[int, int]]
    pair: list[tuple[int, int]]

    def post_processor(self, tokens: dict[int, str]) -> Any:
        """Return the post-processor; ``tokens`` has all ids."""
        numbers = sorted({number for number, _ in self.single + self.pair if number >= 0})
        specials = [
            {"id": f"s{number}", "ids": [number], "tokens": [tokens[number]]} for number in numbers
        ]
        return processors.TemplateProcessing(
            single=_template(self.single), pair=_template(self.pair), special_tokens=specials
        )


def surrounded(before: Sequence[tuple[int, str]], after: Sequence[tuple[int, str]]) -> Any:
    """Return the post-processor that puts tokens, as ids and texts, around each text of a pair."""
    first, second = (
        [*((number, kind) for number, _ in before), (-1 - kind, kind)]
        + [(number, kind) for number, _ in after]
        for kind in (0, 1)
    )
    return Template(first, first + second).post_processor(dict([*before, *after]))


def read(graph: Graph, tokens: Container[int]) -> Template:
    """Return the template of CombineSegments.

    A graph of one text may have a pair's form in its rt_info; a graph of two texts has it in
    CombineSegments, and leaves some segments out if there is no second text.

    Raises:
        ModelError: the segments have another form, or a token is not in the vocabulary.
    """
    node = graph.only("CombineSegments")
    kinds = graph.array(node, len(node.ports) - 1).tolist()
    if len(node.ports) != 3 * len(kinds) + 1 or min(kinds, default=0) < 0:
        raise graph.unsupported(node, "the segments and their numbers differ")
    single: list[tuple[int, int]] = []
    both: list[tuple[int, int]] = []
    texts = 0
    for index, kind in enumerate(kinds):
        if graph.is_constant(node, 3 * index):
            ids = [(number, kind) for number in _ids(graph, node, index)]
            single += [] if _is_for_pairs(graph, node, index) else ids
        else:
            texts += 1
            ids = [(-texts, kind)]
            single += ids if texts == 1 else []
        both += ids
    inputs = [one for one in graph.nodes.values() if one.type == "Parameter"]
    if texts not in (1, 2) or len(inputs) != texts:
        raise graph.unsupported(node, f"{len(inputs)} inputs become {texts} texts")
    pair = both if texts == 2 else _pair(graph) or [*single, (-2, 1)]
    unknown = {number for number, _ in single + pair if number >= 0 and number not in tokens}
    if unknown:
        raise graph.unsupported(node, f"tokens {sorted(unknown)} are not in the vocabulary")
    return Template(single, pair)


def _ids(graph: Graph, node: Node, index: int) -> list[int]:
    """Return the special tokens of a segment."""
    ids: list[int] = graph.array(node, 3 * index + 2).tolist()
    if min(ids, default=0) < 0:
        raise graph.unsupported(node, "an id is negative")
    end = _end_for_pairs(graph, node, index) or (node, 3 * index + 1)
    if (graph.integer(node, 3 * index), graph.integer(*end)) != (0, len(ids)):
        raise graph.unsupported(node, "special tokens are not added by default")
    return ids


def _is_for_pairs(graph: Graph, node: Node, index: int) -> bool:
    return _end_for_pairs(graph, node, index) is not None


def _end_for_pairs(graph: Graph, node: Node, index: int) -> tuple[Node, int] | None:
    """Return the input that is the segment's end if there is a second text; else None.

    Such an end is multiplied by Select(the second text is missing, 0, 1).
    """
    product = graph.source(node, 3 * index + 1)
    if product.type != "Multiply":
        return None
    chosen = graph.source(product, 1)
    if chosen.type != "Select" or [graph.integer(chosen, one) for one in (1, 2)] != [0, 1]:
        raise graph.unsupported(product, "the end of a segment has another form")
    return product, 0


def _template(parts: list[tuple[int, int]]) -> list[str]:
    """Return the template of ids, -1 and -2 for the texts, with segment numbers."""
    names = {-1: "$A", -2: "$B"}
    return [f"{names.get(number, f's{number}')}:{kind}" for number, kind in parts]


def _pair(graph: Graph) -> list[tuple[int, int]]:
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


def settings(graph: Graph) -> dict[str, Any]:
    """Return padding_side, truncation_side and model_max_length, where the graph has them.

    Truncate's limit is without the special tokens that CombineSegments adds.

    Raises:
        ModelError: RaggedToDense ops differ, or Truncate's limit has another form.
    """
    found: dict[str, Any] = {}
    nodes = graph.nodes.values()
    pads = {node.flag("pad_right", True) for node in nodes if node.type == "RaggedToDense"}
    if len(pads) > 1:
        raise graph.error("RaggedToDense ops pad different sides")
    if pads:
        found["padding_side"] = "right" if pads.pop() else "left"
    for node in nodes:
        if node.type == "Truncate":
            place, length = node, len(node.ports) - 3
            limit = graph.source(node, length)
            if limit.type == "Select":  # (whether to truncate, the limit, no limit)
                place, length = limit, 1
            found["model_max_length"] = graph.integer(place, length) + _added(graph)
            found["truncation_side"] = graph.text(node, len(node.ports) - 2)
    return found


def _added(graph: Graph) -> int:
    """Return the number of ids that the graph adds to as many texts as it takes."""
    node = graph.only("CombineSegments")
    constant = [3 * n for n in range(len(node.ports) // 3) if graph.is_constant(node, 3 * n)]
    return sum(graph.array(node, first + 2).size for first in constant)
