"""Lowering of concatenations to DMA."""

from __future__ import annotations

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.op import int_attr
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.replace import replace


def _lower(op: Concat) -> None:
    lowered = npu.Concat(
        operands=[list(op.parts)],
        properties={"axis": int_attr(op.known_axis())},
        result_types=[op.output.type],
    )
    replace(op, lowered)


class LowerConcat(OpPass):
    """Lower concatenations to DMA.

    Before:  %y = ov.Concat(%a, %b) {axis = -1}
    After:   %y = npu.concat(%a, %b) {axis = 3}
    """

    name = "lower-concat"
    rewrites = ((Concat, _lower),)
