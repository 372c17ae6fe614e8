"""Lowering of concatenations to DMA."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.op import int_attr
from compiler_layer.dialects.ov.slicing import Concat
from compiler_layer.model import Model
from compiler_layer.rewriting.replace import replace


@dataclass(frozen=True)
class LowerConcat(ModulePass):
    """Lower concatenations to DMA.

    Before:  %y = ov.Concat(%a, %b) {axis = -1}
    After:   %y = npu.concat(%a, %b) {axis = 3}
    """

    name = "lower-concat"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        for each in Model(op).ops:
            if isinstance(each, Concat):
                lowered = npu.Concat(
                    operands=[list(each.parts)],
                    properties={"axis": int_attr(each.known_axis())},
                    result_types=[each.output.type],
                )
                replace(each, lowered)
