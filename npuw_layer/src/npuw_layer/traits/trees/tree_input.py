"""The input of trees in static models: prompts have none, steps one of their length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.elementwise import Add
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.model import Model
from npuw_layer.backends.arena import ELEMENT_TYPES
from npuw_layer.errors import ModelError
from npuw_layer.traits.trees.names import TREE_MASK
from npuw_layer.traits.trees.tree_mask import ELEMENTS, tree_shape

_RANK = 4


def _tree_mask(model: Model) -> SSAValue:
    """Return the input.

    Raises:
        ModelError: it has another type or rank.
    """
    value = next(port.value for port in model.inputs if port.name == TREE_MASK)
    element, dims = element_of(value), shape_of(value)
    if element not in ELEMENTS or len(dims) != _RANK:
        raise ModelError(
            f"{TREE_MASK} of {element} {list(dims)}, not f32 or f16 [1, 1, tokens, positions]"
        )
    return value


@dataclass(frozen=True)
class ShapeTrees(ModulePass):
    """Give the input of trees its static shape.

    Before:  %eagle_tree_mask : tensor<1x1x?x?xf32>
    After:   %eagle_tree_mask : tensor<1x1xTOKENSxPAST+TOKENSxf32>

    Raises:
        ModelError: the input has another type or rank.
    """

    name = "shape-trees"

    tokens: int
    past: int

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        _tree_mask(model)
        model.set_input_shapes({TREE_MASK: tree_shape(self.tokens, self.past)})


@dataclass(frozen=True)
class DropTrees(ModulePass):
    """Remove the input of trees from a model that reads prompts.

    Before:  %m = ov.Add(%mask, %eagle_tree_mask)
    After:   %mask

    The original gives prompts an input [1, 1, 1, 1], which adds nothing. Without the addition the
    compiler sees which rows attend to which.

    Raises:
        ModelError: the input has another type or rank.
    """

    name = "drop-trees"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
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
