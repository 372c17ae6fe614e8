"""Byte storage of 4-bit weights that the DPU cannot read."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.elements import FOUR_BIT
from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.nibbles import widened


@dataclass(frozen=True)
class WidenNibbles(ModulePass):
    """Store 4-bit weights in bytes where the DPU does not read them.

    Before:  %w = ov.Dequantize(%stored : …xi4, %scale)
    After:   %w = ov.Dequantize(%wider : …xi8, %scale)

    SHAVE and the DMA gather have no elements smaller than a byte. The bytes of a constant are in
    the blob; those of an input are computed whenever the model runs.

    Requires: ``lower-matmul``.
    """

    name = "widen-nibbles"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        for each in model.ops:
            if isinstance(each, Dequantize | Convert):
                for index, operand in enumerate(each.operands):
                    if element_of(operand) in FOUR_BIT:
                        each.operands[index] = widened(each, operand)
        remove_dead_code(model)
