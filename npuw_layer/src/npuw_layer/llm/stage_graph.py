"""The static graph of a stage."""

from __future__ import annotations

from compiler_layer.model import Model
from npuw_layer.llm.head import Head, cut_head
from npuw_layer.llm.rope_cache import cache_rope
from npuw_layer.llm.split import split
from npuw_layer.llm.split_slots import split_slots
from npuw_layer.llm.stages import ROPE_LEAD, Kind, Stage, kv_layout
from npuw_layer.options import Options


def stage_graph(model: Model, stage: Stage, options: Options) -> Model:
    """Make the static graph that is compiled for a stage.

    Args:
        model: the stateful graph; it is not changed.
        stage: which.
        options: whether the head is cut off, and how caches are stored.

    Raises:
        ModelError: the graph is no language model with K and V caches, or cannot be one of several
            conversations.
    """
    if stage.kind is Kind.HEAD:
        return cut_head(model, stage.tokens)
    whole = Head.ALL if stage.kind is Kind.GENERATE else Head.LAST
    head = Head.CUT if options.cuts_head else whole
    if options.caches_rope:
        model = model.clone()
        cache_rope(model, stage.capacity + ROPE_LEAD)
    layout = kv_layout(options)
    if stage.slots > 1:
        return split_slots(model, stage.slots, stage.past, head, layout)
    return split(model, stage.tokens, stage.past, head, layout)
