"""Passes for models that take trees of candidates."""

from __future__ import annotations

from collections.abc import Sequence

from compiler_layer.model import Model
from npuw_layer.llm.graph.pipeline import Placed
from npuw_layer.llm.graph.static_inputs import StaticInputs
from npuw_layer.llm.graph.usual_axes import UsualAxes
from npuw_layer.llm.plan.stages import Kind, Stage
from npuw_layer.options import Options
from npuw_layer.traits.trees.check import check_trees
from npuw_layer.traits.trees.names import TREE_MASK
from npuw_layer.traits.trees.tree_input import DropTrees, ShapeTrees


def passes(model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
    """Return the pass for a model that takes trees.

    Raises:
        ModelError: options rule trees out.
    """
    inputs = [port.name for port in model.inputs]
    if TREE_MASK not in inputs:
        return ()
    check_trees(inputs, [each.name for each in model.variables()], options)
    if stage.kind is Kind.PREFILL:
        return (Placed(UsualAxes.name, DropTrees(), (TREE_MASK,)),)
    shape = ShapeTrees(stage.tokens, stage.past)
    return (Placed(StaticInputs.name, shape, (TREE_MASK,)),)
