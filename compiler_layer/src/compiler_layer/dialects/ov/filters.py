"""Base of convolutions and transposed convolutions: filters along spatial axes."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i64
from xdsl.irdl import operand_def, prop_def, result_def

from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, shape_of

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
