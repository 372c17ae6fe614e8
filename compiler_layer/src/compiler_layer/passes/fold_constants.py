"""Constant folding."""

from __future__ import annotations

from compiler_layer.model import Model
from compiler_layer.rewriting.constants import fold
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.graph_pass import GraphPass

_MAX_ALL_ELEMENTS = 1 << 25
"""Maximum number of elements that are folded in one model; the hardware computes the rest."""


class FoldConstants(GraphPass):
    """Compute at compile time the ops that depend on constants alone.

    Before:  %a = ov.Constant [1, 2]; %b = ov.Add(%a, %a)
    After:   %b = ov.Constant [2, 4]

    Weights are not folded: the hardware converts and scales them. Neither are results of more than
    4 Mi elements, nor more than 32 Mi elements in all.

    Raises:
        UnsupportedModel: a value cannot be computed.
    """

    name = "fold-constants"

    def _rewrite(self, model: Model) -> None:
        left = _MAX_ALL_ELEMENTS
        for each in model.ops:
            left -= fold(each, left)
        remove_dead_code(model)
