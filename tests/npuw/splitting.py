"""Static graphs of given lengths, with all logits, independent of a model's options."""

from __future__ import annotations

from compiler_layer.model import Model
from npuw_layer.llm.graph.check_ports import CheckPorts
from npuw_layer.llm.graph.pipeline import run_passes, split_passes, with_traits
from npuw_layer.llm.kv.kv_layout import PLAIN, KVLayout
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import parse_options


def split(model: Model, tokens: int, past: int, slots: int = 1, layout: KVLayout = PLAIN) -> Model:
    """Build a graph for new tokens after stored ones; the model is not changed."""
    stage = Stage(StageKind.GENERATE, tokens, past, slots)
    core = (CheckPorts(), *split_passes(stage, layout))
    graph = model.clone()
    run_passes(graph, with_traits(core, model, stage, parse_options({})))
    return graph
