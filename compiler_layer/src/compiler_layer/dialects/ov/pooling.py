"""Pooling: the largest or the mean element of windows that slide along spatial axes."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, StringAttr, i64
from xdsl.irdl import operand_def, prop_def, result_def

from compiler_layer.dialects.ov.convolution import SPATIAL
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, shape_of, tensor


class PoolOp(OvOp, ABC):
    """Op on the windows of a tensor [B, C, …]; incomplete windows at the end do not count.

    ``auto_pad`` "explicit" pads by ``pads_begin`` and ``pads_end``, "valid" does not pad.
    """

    x = operand_def(Tensor)
    kernel = prop_def(DenseArrayBase.constr(i64))
    strides = prop_def(DenseArrayBase.constr(i64))
    pads_begin = prop_def(DenseArrayBase.constr(i64))
    pads_end = prop_def(DenseArrayBase.constr(i64))
    rounding_type = prop_def(StringAttr)
    auto_pad = prop_def(StringAttr)

    def steps(self) -> tuple[int, ...]:
        """Return the distance of a window's elements, for each spatial axis."""
        return (1,) * len(self.kernel.get_values())

    def pads(self) -> list[tuple[int, int]]:
        """Return the padding before and after, for each spatial axis."""
        begin, end = self.pads_begin.get_values(), self.pads_end.get_values()
        if self.auto_pad.data == "valid":
            begin = end = (0,) * len(self.kernel.get_values())
        return list(zip(begin, end, strict=True))

    def pooled(self) -> Shape:
        """Return the shape of the result.

        Raises:
            ValueError: the attributes are not valid for each spatial axis, or a window is longer
                than its axis, or in the padding alone.
        """
        x, kernel = shape_of(self.x), self.kernel.get_values()
        strides, steps = self.strides.get_values(), self.steps()
        rank = len(x) - SPATIAL
        sizes = (*kernel, *strides, *steps)
        if rank < 1 or len(sizes) != 3 * rank or not rank == len(kernel) == len(strides):
            raise ValueError(f"windows {list(kernel)} of an operand {list(x)}")
        if min(sizes) < 1 or len(self.pads()) != rank:
            raise ValueError("sizes, strides and dilations must be positive, one for each axis")
        places: list[int] = []
        for axis, (size, pads) in enumerate(zip(x[SPATIAL:], self.pads(), strict=True)):
            reach = (kernel[axis] - 1) * steps[axis] + 1
            short = 0 <= size < reach - sum(pads)
            if short or min(pads) < 0 or max(pads) >= reach:
                raise ValueError(f"windows of {reach} on an axis of {size} with padding {pads}")
            room = size + sum(pads) - reach
            places.append(-1 if size < 0 else room // strides[axis] + 1)
        return (*x[:SPATIAL], *places)


class MaxPool(PoolOp):
    """Largest element of each window, and its index in the operand from ``axis`` on (opset14)."""

    dilations = prop_def(DenseArrayBase.constr(i64))
    index_element_type = prop_def(StringAttr)
    axis = prop_def(IntegerAttr)
    values = result_def(Tensor)
    indices = result_def(Tensor)

    def steps(self) -> tuple[int, ...]:
        """Return the dilations."""
        return tuple(self.dilations.get_values())

    def infer(self) -> list[Tensor]:
        """Infer one element for each window, for values and indices."""
        shape = self.pooled()
        return [tensor(element_of(self.x), shape), tensor(self.index_element_type.data, shape)]


class AvgPool(PoolOp):
    """Mean of each window; ``exclude-pad``: of its elements that are no padding (opset14)."""

    exclude_pad = prop_def(BoolAttr, prop_name="exclude-pad")
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer one element for each window."""
        return [tensor(element_of(self.x), self.pooled())]
