"""Selection of slices by index."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from compiler_layer.dialects.ov.constant import ints_of
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import Tensor, element_of, shape_of, tensor


@irdl_op_definition
class Gather(OvOp):
    """Slices of ``data`` along ``axis``; negative indices count from the end (opset8)."""

    name = "ov.Gather"
    data = operand_def(Tensor)
    indices = operand_def(Tensor)
    axis = operand_def(Tensor)
    batch_dims = prop_def(IntegerAttr)
    output = result_def(Tensor)

    def known_axis(self) -> int:
        """The axis, not negative.

        Raises:
            ValueError: it is not known.
        """
        axis = ints_of(self.axis)
        if axis is None:
            raise ValueError("the axis is no constant")
        return axis[0] % len(shape_of(self.data))

    def infer(self) -> list[Tensor]:
        """data[:axis] + indices[batch_dims:] + data[axis + 1:]."""
        axis, batch = self.known_axis(), int_value(self.batch_dims)
        data, indices = shape_of(self.data), shape_of(self.indices)
        shape = (*data[:axis], *indices[batch:], *data[axis + 1 :])
        return [tensor(element_of(self.data), shape)]
