"""Passes for Eagle's models: the tree mask, and the width of hidden states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Add
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model
from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.check_tokens import CheckTokens, close_row
from npuw_layer.llm.graph.graph_pass import GraphPass, Placed
from npuw_layer.llm.graph.static_inputs import StaticInputs
from npuw_layer.llm.graph.usual_axes import UsualAxes
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import Options
from npuw_layer.tensors.names import LAST_HIDDEN_STATE
from npuw_layer.traits.trees.names import HIDDEN_STATES, TREE_MASK
from npuw_layer.traits.trees.tree_mask import ELEMENTS, tree_shape

_RANK = 4


def passes(model: Model, stage: Stage, options: Options) -> Sequence[Placed]:
    """Return the passes for a model that takes trees, or hidden states of another model.

    Raises:
        ModelError: options rule out trees.
    """
    inputs = [port.name for port in model.inputs]
    states = [Placed(CheckTokens.name, SettleStates())] if HIDDEN_STATES in inputs else []
    if TREE_MASK not in inputs:
        return states
    if stage.kind is StageKind.PREFILL:
        return [*states, Placed(UsualAxes.name, DropTrees(), (TREE_MASK,))]
    shape = ShapeTrees(stage.tokens, stage.past)
    return [*states, Placed(StaticInputs.name, shape, (TREE_MASK,))]


def _tree_mask(model: Model) -> SSAValue:
    """Return the input of the tree mask.

    Raises:
        ModelError: the input has another type or rank.
    """
    value = model.find_input(TREE_MASK)
    assert value is not None  # otherwise the pass is not in the pipeline
    element, dims = element_of(value), shape_of(value)
    if element not in ELEMENTS or len(dims) != _RANK:
        raise ModelError(
            f"{TREE_MASK} of {element} {list(dims)}, not f32 or f16 [1, 1, tokens, positions]"
        )
    return value


@dataclass(frozen=True)
class ShapeTrees(GraphPass):
    """Set the static shape of the tree mask.

    Before:  %eagle_tree_mask : tensor<1x1x?x?xf32>
    After:   %eagle_tree_mask : tensor<1x1xTOKENSxPAST+TOKENSxf32>

    Raises:
        ModelError: the input has another type or rank.
    """

    name = "shape-trees"

    tokens: int
    past: int

    def _rewrite(self, model: Model) -> None:
        _tree_mask(model)
        model.set_input_shapes({TREE_MASK: tree_shape(self.tokens, self.past)})


class DropTrees(GraphPass):
    """Remove the tree mask from a model that reads prompts.

    Before:  %m = ov.Add(%mask, %eagle_tree_mask)
    After:   %mask

    NPUW sets a prompt's mask to [1, 1, 1, 1], which adds 0. Without the addition the
    compiler can derive the visible positions.

    Raises:
        ModelError: the input has another type or rank.
    """

    name = "drop-trees"

    def _rewrite(self, model: Model) -> None:
        value = _tree_mask(model)
        for use in list(value.uses):
            add = use.operation
            if isinstance(add, Add) and len(shape_of(add.output)) == _RANK:
                Rewriter.replace_op(add, [], [add.b if value is add.a else add.a])
        if value.uses:
            zero = np.zeros((1,) * _RANK, ELEMENT_TYPES[element_of(value)])
            g = GraphBuilder(model, model.body.first_op)
            value.replace_all_uses_with(g.constant(zero))
        model.remove_input(TREE_MASK)


class SettleStates(GraphPass):
    """Fix the width of the hidden states that a draft takes.

    Before:  %hidden_states : tensor<?x?x?xf32> ; the output last_hidden_state : ?x?x96
    After:   %hidden_states : tensor<?x?x96xf32>

    A draft whose first matmul was moved to the target takes hidden states as wide as its output.

    Source: NPUW's ReshapeToStatic, which finds the width in the same way.
    """

    name = "settle-states"

    def _rewrite(self, model: Model) -> None:
        for port in model.outputs:
            if port.name == LAST_HIDDEN_STATE:
                close_row(model, HIDDEN_STATES, shape_of(port.value))
