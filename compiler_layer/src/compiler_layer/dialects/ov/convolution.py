"""Convolutions, and transposed convolutions, which upsample as convolutions downsample."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i64
from xdsl.irdl import operand_def, prop_def, result_def

from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, shape_of, tensor

SPATIAL = 2
"""First spatial axis; the axes before are batch and channels."""


class FilterOp(OvOp, ABC):
    """Op that applies filters to a tensor [B, C, …] at positions of its spatial axes."""

    x = operand_def(Tensor)
    filters = operand_def(Tensor)
    strides = prop_def(DenseArrayBase.constr(i64))
    pads_begin = prop_def(DenseArrayBase.constr(i64))
    pads_end = prop_def(DenseArrayBase.constr(i64))
    dilations = prop_def(DenseArrayBase.constr(i64))
    auto_pad = prop_def(StringAttr)
    output = result_def(Tensor)

    def filter_shape(self) -> Shape:
        """Return the shape of the filters of all groups together."""
        return shape_of(self.filters)

    def checked_filters(self, taken: int) -> Shape:
        """Check the filters against the operand, and return their shape.

        Args:
            taken: the index of the input channels' dimension.

        Raises:
            ValueError: the filters do not fit the operand, or strides, dilations or padding do
                not have one valid number for each spatial axis.
        """
        x, filters = shape_of(self.x), self.filter_shape()
        if element_of(self.x) != element_of(self.filters):
            raise ValueError(f"operand types {element_of(self.x)} and {element_of(self.filters)}")
        if len(x) <= SPATIAL or len(filters) != len(x):
            raise ValueError(f"operand {list(x)} and filters {list(filters)} differ in rank")
        if x[1] != filters[taken] and -1 not in (x[1], filters[taken]):
            raise ValueError(f"{x[1]} channels, but filters for {filters[taken]}")
        rank = len(x) - SPATIAL
        steps = (*self.strides.get_values(), *self.dilations.get_values())
        if len(steps) != 2 * rank or min(steps) < 1:
            raise ValueError(f"{list(steps)} are not strides and dilations for {rank} axes")
        given = (*self.pads_begin.get_values(), *self.pads_end.get_values())
        if self.auto_pad.data == "explicit" and (len(given) != 2 * rank or min(given) < 0):
            raise ValueError(f"{list(given)} is not padding for {rank} axes")
        return filters

    def reach(self, kernel: int, axis: int) -> int:
        """Return the extent of a filter from its first to its last element, both included."""
        return (kernel - 1) * self.dilations.get_values()[axis] + 1

    def joined_groups(self, taken: int) -> Shape:
        """Return the shape of filters [G, …, …, *kernel] with the groups joined.

        Args:
            taken: the index of the input channels' dimension, counted after the groups.

        Raises:
            ValueError: the filters have no dimension of groups.
        """
        filters = shape_of(self.filters)
        if len(filters) <= SPATIAL:
            raise ValueError(f"filters {list(filters)} have no groups")
        groups, *each = filters[: SPATIAL + 1]
        channels = shape_of(self.x)[1:SPATIAL]
        if groups < 0 < each[taken] and channels and channels[0] >= 0:
            groups = channels[0] // each[taken]
        joined = (-1 if -1 in (groups, many) else groups * many for many in each)
        return (*joined, *filters[SPATIAL + 1 :])


class ConvolutionBase(FilterOp, ABC):
    """Convolution of a tensor [B, C, …] with filters along its spatial axes.

    ``auto_pad`` "explicit" pads by ``pads_begin`` and ``pads_end``, "valid" does not pad;
    "same_upper" and "same_lower" pad to ceil(size / stride) positions, and put an odd element at
    the end or at the beginning. ``filter_shape`` is [O, C, …] for O output and C input channels.
    """

    def infer(self) -> list[Tensor]:
        """Infer [B, O, *positions] from [B, C, *S] and [O, C, *K]."""
        x, filters = shape_of(self.x), self.checked_filters(1)
        places = [self._positions(x, filters, axis) for axis in range(len(x) - SPATIAL)]
        return [tensor(element_of(self.x), (x[0], filters[0], *places))]

    def pads(self) -> list[tuple[int, int]]:
        """Return the padding before and after, for each spatial axis of static shapes."""
        x, filters = shape_of(self.x), self.filter_shape()
        return [self._pads(x, filters, axis) for axis in range(len(x) - SPATIAL)]

    def _positions(self, x: Shape, filters: Shape, axis: int) -> int:
        size, kernel = x[SPATIAL + axis], filters[SPATIAL + axis]
        stride = self.strides.get_values()[axis]
        if self.auto_pad.data.startswith("same"):
            return -1 if size < 0 else -(-size // stride)
        if size < 0:
            return -1
        # The shortest filter has the most positions; if it has one, every filter has.
        room = size + sum(self._pads(x, filters, axis)) - self.reach(max(kernel, 1), axis)
        if room < 0:
            raise ValueError(f"a filter of {kernel} elements is longer than the axis of {size}")
        positions = room // stride + 1
        return positions if kernel >= 0 or positions == 1 else -1

    def _pads(self, x: Shape, filters: Shape, axis: int) -> tuple[int, int]:
        kind = self.auto_pad.data
        if kind == "explicit":
            return self.pads_begin.get_values()[axis], self.pads_end.get_values()[axis]
        if kind == "valid":
            return 0, 0
        size, stride = x[SPATIAL + axis], self.strides.get_values()[axis]
        reach = self.reach(filters[SPATIAL + axis], axis)
        total = max((-(-size // stride) - 1) * stride + reach - size, 0)
        less, more = total // 2, total - total // 2
        return (less, more) if kind == "same_upper" else (more, less)


class Convolution(ConvolutionBase):
    """Convolution of [B, C, …] with filters [O, C, …] (opset1)."""


class GroupConvolution(ConvolutionBase):
    """Convolution within each group of channels, with filters [G, O / G, C / G, …] (opset1)."""

    def filter_shape(self) -> Shape:
        """Return the shape of the groups' joined filters."""
        return self.joined_groups(1)

    @property
    def is_depthwise(self) -> bool:
        """True if each channel has its own single filter."""
        return shape_of(self.filters)[1:3] == (1, 1)


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


class GroupConvolutionBackpropData(TransposedConvolutionBase):
    """Transposed convolution within each group, with filters [G, C / G, O / G, …] (opset1)."""

    def filter_shape(self) -> Shape:
        """Return the shape of the groups' joined filters."""
        return self.joined_groups(0)
