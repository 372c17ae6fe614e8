"""The input of trees in static models: prompts have none, steps one of their length.

The original gives prompts [1, 1, 1, 1], which adds nothing; here it goes, with the addition: what
is left tells the compiler who sees whom.
"""

from __future__ import annotations

import numpy as np
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


def takes_trees(model: Model) -> bool:
    """Whether a graph has the input."""
    return any(port.name == TREE_MASK for port in model.inputs)


def tree_shapes(model: Model, tokens: int, past: int) -> dict[str, tuple[int, ...]]:
    """The shape of the input of a static model, by its name; none for one that takes no trees.

    Raises:
        ModelError: the input is of another type or rank.
    """
    for port in model.inputs:
        if port.name != TREE_MASK:
            continue
        element, dims = element_of(port.value), shape_of(port.value)
        if element not in ELEMENTS or len(dims) != _RANK:
            raise ModelError(
                f"{TREE_MASK} of {element} {list(dims)}, not f32 or f16 [1, 1, tokens, positions]"
            )
        return {TREE_MASK: tree_shape(tokens, past)}
    return {}


def drop_trees(model: Model) -> None:
    """Let a model that reads prompts take no trees.

    Args:
        model: changed in place; what the input is added to is as if it were 0.

    Raises:
        ModelError: the input is of another type or rank.
    """
    if not tree_shapes(model, 1, 0):
        return
    value = next(port.value for port in model.inputs if port.name == TREE_MASK)
    for use in list(value.uses):
        op = use.operation
        if isinstance(op, Add) and len(shape_of(op.output)) == _RANK:
            Rewriter.replace_op(op, [], [op.b if value is op.a else op.a])
    if value.uses:
        zero = np.zeros((1,) * _RANK, ELEMENT_TYPES[element_of(value)])
        value.replace_all_uses_with(GraphBuilder(model, model.body.first_op).constant(zero))
    model.remove_input(TREE_MASK)
