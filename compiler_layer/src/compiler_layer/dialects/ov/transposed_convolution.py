"""Transposed convolutions, which upsample as convolutions downsample."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.irdl import prop_def

from compiler_layer.dialects.ov.filters import SPATIAL, FilterOp
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, shape_of, tensor


class TransposedConvolutionBase(FilterOp, ABC):
    """Transposed convolution of [B, C, …]: each element times a filter, summed ``strides`` apart.

    ``pads_begin`` and ``pads_end`` crop the result; ``output_padding`` extends its end, with
    elements that only receive contributions of filters that overlap them. ``filter_shape`` is
    [C, O, …]: C input channels, each of which contributes to O output channels.
    """

    output_padding = prop_def(DenseArrayBase.constr(i64))

    def infer(self) -> list[Tensor]:
        """Infer [B, O, *positions] from [B, C, *S] and [C, O, *K]."""
        if self.auto_pad.data != "explicit":
            raise ValueError(f"padding by {self.auto_pad.data!r} is not supported; use 'explicit'")
        x, filters = shape_of(self.x), self.checked_filters(0)
        rank = len(x) - SPATIAL
        added = self.output_padding.get_values()
        if added and (len(added) != rank or min(added) < 0):
            raise ValueError(f"{list(added)} is not output padding for {rank} axes")
        places = [
            self._positions(x[SPATIAL + axis], filters[SPATIAL + axis], axis)
            for axis in range(rank)
        ]
        return [tensor(element_of(self.x), (x[0], filters[1], *places))]

    def added(self, axis: int) -> int:
        """Return the number of elements added at the end of a spatial axis."""
        values = self.output_padding.get_values()
        return values[axis] if values else 0

    def _positions(self, size: int, kernel: int, axis: int) -> int:
        if size < 0 or kernel < 0:
            return -1
        cut = self.pads_begin.get_values()[axis] + self.pads_end.get_values()[axis]
        found = (size - 1) * self.strides.get_values()[axis] + self.reach(kernel, axis) - cut
        found += self.added(axis)
        if found < 1:
            raise ValueError(f"a filter of {kernel} over {size} elements results in no elements")
        return found


class ConvolutionBackpropData(TransposedConvolutionBase):
    """Transposed convolution of [B, C, …] with filters [C, O, …] (opset1)."""

    def filter_shape(self) -> Shape:
        """Return the shape of the operand."""
        return shape_of(self.filters)


class GroupConvolutionBackpropData(TransposedConvolutionBase):
    """Transposed convolution within each group, with filters [G, C / G, O / G, …] (opset1)."""

    def filter_shape(self) -> Shape:
        """Return the shape of the groups' joined filters."""
        return self.joined_groups(0)
