"""Random numbers."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.irdl import operand_def, prop_def, result_def

from compiler_layer.dialects.ov.constant import ints_of
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Tensor, length_of, shape_of, tensor, unknown_dims


class RandomUniform(OvOp):
    """Uniformly distributed numbers from ``low`` to below ``high`` (opset8).

    ``global_seed`` and ``op_seed`` determine them; if both are 0, each run draws others.
    """

    shape = operand_def(Tensor)
    low = operand_def(Tensor)
    high = operand_def(Tensor)
    output_type = prop_def(StringAttr)
    global_seed = prop_def(IntegerAttr)
    op_seed = prop_def(IntegerAttr)
    alignment = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the shape that the operand states."""
        for bound in (self.low, self.high):
            if any(d not in (1, -1) for d in shape_of(bound)):
                raise ValueError(f"a bound is not a scalar: {list(shape_of(bound))}")
        dims = ints_of(self.shape)
        if dims is None:
            return [tensor(self.output_type.data, unknown_dims(length_of(self.shape)))]
        return [tensor(self.output_type.data, tuple(dims))]
