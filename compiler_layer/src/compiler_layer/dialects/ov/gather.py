"""Selection of slices by index."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import operand_def, prop_def, result_def

from compiler_layer.dialects.ov.constant import int_of
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import (
    Tensor,
    element_of,
    known_axis,
    same_dims,
    shape_of,
    tensor,
)


class Gather(OvOp):
    """Slices of ``data`` along ``axis``; negative indices count from the end (opset8)."""

    data = operand_def(Tensor)
    indices = operand_def(Tensor)
    axis = operand_def(Tensor)
    batch_dims = prop_def(IntegerAttr)
    output = result_def(Tensor)

    def known_axis(self) -> int:
        """Return the axis, not negative.

        Raises:
            ValueError: the axis is not known, or does not exist.
        """
        axis = int_of(self.axis)
        if axis is None:
            raise ValueError("the axis is not a constant")
        return known_axis(axis, len(shape_of(self.data)))

    def infer(self) -> list[Tensor]:
        """Infer data[:axis] + indices[batch_dims:] + data[axis + 1:]."""
        axis, batch = self.known_axis(), int_value(self.batch_dims)
        data, indices = shape_of(self.data), shape_of(self.indices)
        if not 0 <= batch <= min(axis, len(indices)):
            raise ValueError(f"{batch} batch dimensions, axis {axis}, indices {list(indices)}")
        outer = same_dims(data[:batch], indices[:batch])
        shape = (*outer, *data[batch:axis], *indices[batch:], *data[axis + 1 :])
        return [tensor(element_of(self.data), shape)]


class GatherElements(OvOp):
    """data[i][index[i][j][k]][k] for axis 1: one index for each element of the result (opset6)."""

    data = operand_def(Tensor)
    indices = operand_def(Tensor)
    axis = prop_def(IntegerAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the shape of the indices."""
        data, indices = shape_of(self.data), shape_of(self.indices)
        axis = known_axis(int_value(self.axis), len(data))
        shape = same_dims((*data[:axis], -1, *data[axis + 1 :]), indices)
        return [tensor(element_of(self.data), (*shape[:axis], indices[axis], *shape[axis + 1 :]))]


class GatherND(OvOp):
    """Slices of ``data`` at index tuples, the last dimension of ``indices`` (opset8)."""

    data = operand_def(Tensor)
    indices = operand_def(Tensor)
    batch_dims = prop_def(IntegerAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer indices[:-1] + data[batch_dims + length of a tuple:]."""
        data, indices = shape_of(self.data), shape_of(self.indices)
        batch, depth = int_value(self.batch_dims), indices[-1] if indices else -1
        if depth < 0:
            raise ValueError("the length of the index tuples is not known")
        if not 0 <= batch < len(indices) or batch + depth > len(data):
            raise ValueError(f"{batch} batch dimensions and {depth} indices exceed {list(data)}")
        outer = same_dims(data[:batch], indices[:batch])
        shape = (*outer, *indices[batch:-1], *data[batch + depth :])
        return [tensor(element_of(self.data), shape)]
