"""Ops of quantized models; ``fuse-dequantize`` creates Dequantize."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
)

from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Tensor, broadcast, element_of, shape_of, tensor
from compiler_layer.elements import FLOAT8


class FakeQuantize(OvOp):
    """Rounding to one of ``levels`` steps, with bounds of the input and the output (opset1)."""

    x = operand_def(Tensor)
    input_low = operand_def(Tensor)
    input_high = operand_def(Tensor)
    output_low = operand_def(Tensor)
    output_high = operand_def(Tensor)
    levels = prop_def(IntegerAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the operand's type; the bounds broadcast to it."""
        shape = shape_of(self.x)
        for bound in (self.input_low, self.input_high, self.output_low, self.output_high):
            broadcast(shape, shape_of(bound))
        return [tensor(element_of(self.x), shape)]


class FakeConvert(OvOp):
    """(f8(x · scale - shift) + shift) / scale, clamped to the range of f8 (opset13).

    ``scale`` and ``shift`` broadcast to ``x``. The division is a multiplication by 1 / scale, as
    on OpenVINO's CPU plugin.
    """

    x = operand_def(Tensor)
    scale = operand_def(Tensor)
    shift = opt_operand_def(Tensor)
    destination_type = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the operand's type; scale and shift broadcast to it."""
        shape = shape_of(self.x)
        for table in (self.scale, self.shift):
            if table is not None:
                shape = broadcast(shape, shape_of(table))
        if self.destination_type.data not in FLOAT8:
            raise ValueError(f"{self.destination_type.data} is not an 8-bit float")
        return [tensor(element_of(self.x), shape)]


class Dequantize(OvOp):
    """(stored - zero) · scale, computed in f32: the values of compressed weights.

    ``scale`` and ``zero`` broadcast to ``stored``. 8-bit floats may also be stored, without zero
    points.
    """

    stored = operand_def(Tensor)
    scale = operand_def(Tensor)
    zero = opt_operand_def(Tensor)
    destination_type = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the shape of ``stored``, in the destination type."""
        shape = shape_of(self.stored)
        for table in (self.scale, self.zero):
            if table is not None and broadcast(shape, shape_of(table)) != shape:
                raise ValueError(f"{list(shape_of(table))} does not broadcast to {list(shape)}")
        return [tensor(self.destination_type.data, shape)]
