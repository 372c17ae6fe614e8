"""Byte storage of 4-bit weights that the DPU cannot read."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from compiler_layer.dialects.ov.constant import Constant, constant_of
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import FOUR_BIT
from compiler_layer.files import FileView
from compiler_layer.model import Model
from compiler_layer.rewriting.dead_code import remove_dead_code
from compiler_layer.rewriting.replace import insert_before


def eight_bit(value: SSAValue) -> Constant:
    """Return a constant of 4-bit integers as bytes; a constant in a file stays there.

    A constant in a file is widened when it is read, once for all programs of a model.
    """
    constant = constant_of(value)
    assert constant is not None  # Dequantize has constant operands until a gather is lowered
    kind = "i8" if element_of(value) == "i4" else "u8"

    def widened(one: Constant) -> Constant:
        held = one.held
        if isinstance(held, FileView):
            return Constant.of_file(held, kind, shape_of(one.output))
        return Constant.inline(one.load(), kind)

    found = constant.each(widened)
    found.attributes.update(constant.attributes)
    return found


@dataclass(frozen=True)
class WidenNibbles(ModulePass):
    """Store 4-bit weights in bytes where the DPU does not read them.

    Before:  %w = ov.Dequantize(%stored : …xi4, %scale)
    After:   %w = ov.Dequantize(%wider : …xi8, %scale)

    SHAVE and the DMA gather have no elements smaller than a byte.

    Requires: ``lower-matmul``.
    """

    name = "widen-nibbles"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        del ctx
        model = Model(op)
        for each in model.ops:
            if isinstance(each, Dequantize):
                for index, operand in enumerate(each.operands):
                    if element_of(operand) in FOUR_BIT:
                        each.operands[index] = insert_before(each, eight_bit(operand))
        remove_dead_code(model)
