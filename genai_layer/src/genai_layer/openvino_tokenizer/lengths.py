"""Truncation and padding of tokenizer models, as settings of tokenizer_config.json.

Source: openvino_tokenizers 2026.4, tokenizer_pipeline.py; docs/reference/genai.md#tokenizer-models.
"""

from __future__ import annotations

from typing import Any

from genai_layer.openvino_tokenizer.graph import Graph


def settings(graph: Graph, special: int) -> dict[str, Any]:
    """Return padding_side, truncation_side and model_max_length, where the graph has them.

    Args:
        graph: the tokenizer model.
        special: number of special tokens that CombineSegments adds; Truncate's limit is without
            them.

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
            found["model_max_length"] = graph.integer(place, length) + special
            found["truncation_side"] = graph.text(node, len(node.ports) - 2)
    return found
