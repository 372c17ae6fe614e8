"""What convolutions and transposed ones have in common: filters along spatial axes."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i64
from xdsl.irdl import operand_def, prop_def, result_def

from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, shape_of

SPATIAL = 2
"""The first axis that is neither the batch's nor that of channels."""


class FilterOp(OvOp, ABC):
    """Products of a tensor [B, C, …] with filters at places of its spatial axes."""

    x = operand_def(Tensor)
    filters = operand_def(Tensor)
    strides = prop_def(DenseArrayBase.constr(i64))
    pads_begin = prop_def(DenseArrayBase.constr(i64))
    pads_end = prop_def(DenseArrayBase.constr(i64))
    dilations = prop_def(DenseArrayBase.constr(i64))
    auto_pad = prop_def(StringAttr)
    output = result_def(Tensor)

    @abstractmethod
    def filter_shape(self) -> Shape:
        """The filters of all groups together."""

    def checked_filters(self, taken: int) -> Shape:
        """Give the filters' shape.

        Args:
            taken: which of its dimensions is that of the channels that go in.

        Raises:
            ValueError: they are not for such an operand, or there is no sensible number for each
                spatial axis.
        """
        x, filters = shape_of(self.x), self.filter_shape()
        if element_of(self.x) != element_of(self.filters):
            raise ValueError(f"operands of {element_of(self.x)} and {element_of(self.filters)}")
        if len(x) <= SPATIAL or len(filters) != len(x):
            raise ValueError(f"a convolution of {list(x)} with filters of {list(filters)}")
        if x[1] != filters[taken] and -1 not in (x[1], filters[taken]):
            raise ValueError(f"{x[1]} channels, filters of {filters[taken]}")
        rank = len(x) - SPATIAL
        steps = (*self.strides.get_values(), *self.dilations.get_values())
        if len(steps) != 2 * rank or min(steps) < 1:
            raise ValueError(f"strides and dilations of {list(steps)} for {rank} axes")
        given = (*self.pads_begin.get_values(), *self.pads_end.get_values())
        if self.auto_pad.data == "explicit" and (len(given) != 2 * rank or min(given) < 0):
            raise ValueError(f"padding of {list(given)} for {rank} axes")
        return filters

    def reach(self, kernel: int, axis: int) -> int:
        """Elements from the first to the last that a filter is multiplied with."""
        return (kernel - 1) * self.dilations.get_values()[axis] + 1

    def joined_groups(self, taken: int) -> Shape:
        """Give the shape of filters [G, …, …, *kernel] as if the groups were one.

        Args:
            taken: which dimension, behind that of groups, is that of the channels that go in.

        Raises:
            ValueError: there are no groups.
        """
        filters = shape_of(self.filters)
        if len(filters) <= SPATIAL:
            raise ValueError(f"filters of {list(filters)} in groups")
        groups, *each = filters[: SPATIAL + 1]
        channels = shape_of(self.x)[1:SPATIAL]
        if groups < 0 < each[taken] and channels and channels[0] >= 0:
            groups = channels[0] // each[taken]
        joined = (-1 if -1 in (groups, many) else groups * many for many in each)
        return (*joined, *filters[SPATIAL + 1 :])
