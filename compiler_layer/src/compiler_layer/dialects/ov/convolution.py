"""Convolutions."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i64
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, shape_of, tensor

SPATIAL = 2
"""The first axis that is neither the batch's nor that of channels."""


class SlidingProducts(OvOp, ABC):
    """Products of a tensor [B, C, …] with filters at each place of its spatial axes.

    ``auto_pad`` "explicit" pads as ``pads_begin`` and ``pads_end`` say, "valid" not at all,
    "same_upper" and "same_lower" so that as many positions come out as strides leave; an odd one is
    added at the end, or at the beginning.
    """

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
        """[O, C, …]: as many filters as channels come out, over all channels that go in."""

    def infer(self) -> list[Tensor]:
        """[B, C, *S] and [O, C, *K] -> [B, O, *positions]."""
        x, filters = shape_of(self.x), self.filter_shape()
        if element_of(self.x) != element_of(self.filters):
            raise ValueError(f"operands of {element_of(self.x)} and {element_of(self.filters)}")
        if len(x) <= SPATIAL or len(filters) != len(x):
            raise ValueError(f"a convolution of {list(x)} with filters of {list(filters)}")
        if x[1] != filters[1] and -1 not in (x[1], filters[1]):
            raise ValueError(f"{x[1]} channels, filters of {filters[1]}")
        rank = len(x) - SPATIAL
        self._check(rank)
        places = [self._positions(x, filters, axis) for axis in range(rank)]
        return [tensor(element_of(self.x), (x[0], filters[0], *places))]

    def pads(self) -> list[tuple[int, int]]:
        """Elements that are added before and behind, for each spatial axis of static shapes."""
        x, filters = shape_of(self.x), self.filter_shape()
        return [self._pads(x, filters, axis) for axis in range(len(x) - SPATIAL)]

    def _check(self, rank: int) -> None:
        """See that there is a sensible number for each spatial axis."""
        steps = (*self.strides.get_values(), *self.dilations.get_values())
        if len(steps) != 2 * rank or min(steps) < 1:
            raise ValueError(f"strides and dilations of {list(steps)} for {rank} axes")
        given = (*self.pads_begin.get_values(), *self.pads_end.get_values())
        if self.auto_pad.data == "explicit" and (len(given) != 2 * rank or min(given) < 0):
            raise ValueError(f"padding of {list(given)} for {rank} axes")

    def _positions(self, x: Shape, filters: Shape, axis: int) -> int:
        size, kernel = x[SPATIAL + axis], filters[SPATIAL + axis]
        stride = self.strides.get_values()[axis]
        if self.auto_pad.data.startswith("same"):
            return -1 if size < 0 else -(-size // stride)
        if size < 0:
            return -1
        # The shortest filter has most positions; if that is one, all have.
        room = size + sum(self._pads(x, filters, axis)) - self._reach(max(kernel, 1), axis)
        if room < 0:
            raise ValueError(f"a filter of {kernel} over {size} elements")
        positions = room // stride + 1
        return positions if kernel >= 0 or positions == 1 else -1

    def _reach(self, kernel: int, axis: int) -> int:
        """Elements from the first to the last that a filter is multiplied with."""
        return (kernel - 1) * self.dilations.get_values()[axis] + 1

    def _pads(self, x: Shape, filters: Shape, axis: int) -> tuple[int, int]:
        kind = self.auto_pad.data
        if kind == "explicit":
            return self.pads_begin.get_values()[axis], self.pads_end.get_values()[axis]
        if kind == "valid":
            return 0, 0
        size, stride = x[SPATIAL + axis], self.strides.get_values()[axis]
        reach = self._reach(filters[SPATIAL + axis], axis)
        total = max((-(-size // stride) - 1) * stride + reach - size, 0)
        less, more = total // 2, total - total // 2
        return (less, more) if kind == "same_upper" else (more, less)


@irdl_op_definition
class Convolution(SlidingProducts):
    """Sliding products of [B, C, …] with filters [O, C, …] (opset1)."""

    name = "ov.Convolution"

    def filter_shape(self) -> Shape:
        """That of the operand."""
        return shape_of(self.filters)


@irdl_op_definition
class GroupConvolution(SlidingProducts):
    """The same for each group of channels alone, with filters [G, O / G, C / G, …] (opset1)."""

    name = "ov.GroupConvolution"

    def filter_shape(self) -> Shape:
        """That of the groups together."""
        filters = shape_of(self.filters)
        if len(filters) <= SPATIAL:
            raise ValueError(f"filters of {list(filters)} in groups")
        groups, made, taken, *kernel = filters
        channels = shape_of(self.x)[1:SPATIAL]
        if groups < 0 < taken and channels and channels[0] >= 0:
            groups = channels[0] // taken
        return (_times(groups, made), _times(groups, taken), *kernel)

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel has one filter of its own."""
        return shape_of(self.filters)[1:3] == (1, 1)


def _times(groups: int, each: int) -> int:
    return -1 if -1 in (groups, each) else groups * each
