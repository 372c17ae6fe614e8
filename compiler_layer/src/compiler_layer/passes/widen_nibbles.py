"""Byte storage of 4-bit weights that the DPU cannot read."""

from __future__ import annotations

from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.elements import FOUR_BIT
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.nibbles import widened


def _widen(op: Dequantize | Convert) -> None:
    for index, operand in enumerate(op.operands):
        if element_of(operand) in FOUR_BIT:
            op.operands[index] = widened(op, operand)


class WidenNibbles(OpPass):
    """Store 4-bit weights in bytes where the DPU does not read them.

    Before:  %w = ov.Dequantize(%stored : …xi4, %scale)
    After:   %w = ov.Dequantize(%wider : …xi8, %scale)

    SHAVE and the DMA gather have no elements smaller than a byte. The bytes of a constant are in
    the blob; those of an input are computed whenever the model runs.

    Requires: ``lower-matmul``.
    """

    name = "widen-nibbles"
    rewrites = ((Dequantize, _widen), (Convert, _widen))
