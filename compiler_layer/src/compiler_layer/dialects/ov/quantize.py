"""Ops that only quantised models have."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Tensor, broadcast, element_of, shape_of, tensor


@irdl_op_definition
class FakeQuantize(OvOp):
    """Rounds to one of ``levels`` steps between bounds, given before and after (opset1)."""

    name = "ov.FakeQuantize"
    x = operand_def(Tensor)
    input_low = operand_def(Tensor)
    input_high = operand_def(Tensor)
    output_low = operand_def(Tensor)
    output_high = operand_def(Tensor)
    levels = prop_def(IntegerAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """The operand's type; the bounds broadcast to it."""
        shape = shape_of(self.x)
        for bound in (self.input_low, self.input_high, self.output_low, self.output_high):
            broadcast(shape, shape_of(bound))
        return [tensor(element_of(self.x), shape)]
