"""Ops that relate values and indices: largest elements, non-zero elements, one-hot vectors."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr
from xdsl.irdl import operand_def, prop_def, result_def

from compiler_layer.dialects.ov.constant import int_of
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import Tensor, element_of, known_axis, shape_of, tensor


class TopK(OvOp):
    """Largest or smallest k elements along an axis, and their indices (opset11).

    ``mode`` is "max" or "min"; ``sort`` orders by "value", by "index", or not at all ("none").
    """

    x = operand_def(Tensor)
    k = operand_def(Tensor)
    axis = prop_def(IntegerAttr)
    mode = prop_def(StringAttr)
    sort = prop_def(StringAttr)
    stable = prop_def(BoolAttr)
    index_element_type = prop_def(StringAttr)
    values = result_def(Tensor)
    indices = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the operand's shape with k along the axis, for values and indices."""
        k = int_of(self.k)
        dims = list(shape_of(self.x))
        axis = known_axis(int_value(self.axis), len(dims))
        if k is not None and (k < 0 or 0 <= dims[axis] < k):
            raise ValueError(f"k is {k}, but the axis has {dims[axis]} elements")
        dims[axis] = -1 if k is None else k
        shape = tuple(dims)
        return [tensor(element_of(self.x), shape), tensor(self.index_element_type.data, shape)]


class NonZero(OvOp):
    """Indices of non-zero elements: [rank, count] (opset3)."""

    x = operand_def(Tensor)
    output_type = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer one row per dimension; the number of columns depends on the data."""
        return [tensor(self.output_type.data, (len(shape_of(self.x)), -1))]


class OneHot(OvOp):
    """``on`` where the new dimension's index equals the operand, else ``off`` (opset1).

    An index beyond ``depth`` results in ``off`` only.
    """

    indices = operand_def(Tensor)
    depth = operand_def(Tensor)
    on = operand_def(Tensor)
    off = operand_def(Tensor)
    axis = prop_def(IntegerAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the operand's shape with a dimension of ``depth`` inserted at the axis."""
        depth = int_of(self.depth)
        if depth is not None and depth < 0:
            raise ValueError(f"the depth is negative: {depth}")
        shape = shape_of(self.indices)
        axis = known_axis(int_value(self.axis), len(shape) + 1)
        inserted = -1 if depth is None else depth
        return [tensor(element_of(self.on), (*shape[:axis], inserted, *shape[axis:]))]
