"""Transposed convolutions: what a convolution makes of few places, these make many of."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.irdl import irdl_op_definition, prop_def

from compiler_layer.dialects.ov.filters import SPATIAL, FilterOp
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, shape_of, tensor


class ScatteredProducts(FilterOp, ABC):
    """Each element of [B, C, …] times a filter, added up ``strides`` apart.

    ``pads_begin`` and ``pads_end`` are cut off the result, ``output_padding`` is added at its end;
    what is added there has no products of its own beyond those that reach it. ``filter_shape`` is
    [C, O, …]: for each channel that goes in, what it adds to each that comes out.
    """

    output_padding = prop_def(DenseArrayBase.constr(i64))

    def infer(self) -> list[Tensor]:
        """[B, C, *S] and [C, O, *K] -> [B, O, *positions]."""
        if self.auto_pad.data != "explicit":
            raise ValueError(f"padding by {self.auto_pad.data!r} is not understood")
        x, filters = shape_of(self.x), self.checked_filters(0)
        rank = len(x) - SPATIAL
        added = self.output_padding.get_values()
        if added and (len(added) != rank or min(added) < 0):
            raise ValueError(f"output padding of {list(added)} for {rank} axes")
        places = [
            self._positions(x[SPATIAL + axis], filters[SPATIAL + axis], axis)
            for axis in range(rank)
        ]
        return [tensor(element_of(self.x), (x[0], filters[1], *places))]

    def added(self, axis: int) -> int:
        """Elements that are added at the end of a spatial axis."""
        values = self.output_padding.get_values()
        return values[axis] if values else 0

    def _positions(self, size: int, kernel: int, axis: int) -> int:
        if size < 0 or kernel < 0:
            return -1
        cut = self.pads_begin.get_values()[axis] + self.pads_end.get_values()[axis]
        found = (size - 1) * self.strides.get_values()[axis] + self.reach(kernel, axis) - cut
        found += self.added(axis)
        if found < 1:
            raise ValueError(f"a filter of {kernel} over {size} elements leaves nothing")
        return found


@irdl_op_definition
class ConvolutionBackpropData(ScatteredProducts):
    """Transposed convolution of [B, C, …] with filters [C, O, …] (opset1)."""

    name = "ov.ConvolutionBackpropData"

    def filter_shape(self) -> Shape:
        """That of the operand."""
        return shape_of(self.filters)


@irdl_op_definition
class GroupConvolutionBackpropData(ScatteredProducts):
    """The same for each group of channels alone, with filters [G, C / G, O / G, …] (opset1)."""

    name = "ov.GroupConvolutionBackpropData"

    def filter_shape(self) -> Shape:
        """That of the groups together."""
        return self.joined_groups(0)
