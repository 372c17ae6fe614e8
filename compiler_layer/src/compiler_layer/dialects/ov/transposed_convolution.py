"""Transposed convolutions: what a convolution makes of few places, these make many of."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i64
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from compiler_layer.dialects.ov.convolution import SPATIAL
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, shape_of, tensor


class ScatteredProducts(OvOp, ABC):
    """Each element of [B, C, …] times a filter, added up ``strides`` apart.

    ``pads_begin`` and ``pads_end`` are cut off the result, ``output_padding`` is added at its end;
    what is added there has no products of its own beyond those that reach it.
    """

    x = operand_def(Tensor)
    filters = operand_def(Tensor)
    strides = prop_def(DenseArrayBase.constr(i64))
    pads_begin = prop_def(DenseArrayBase.constr(i64))
    pads_end = prop_def(DenseArrayBase.constr(i64))
    dilations = prop_def(DenseArrayBase.constr(i64))
    auto_pad = prop_def(StringAttr)
    output_padding = prop_def(DenseArrayBase.constr(i64))
    output = result_def(Tensor)

    @abstractmethod
    def filter_shape(self) -> Shape:
        """[C, O, …]: for each channel that goes in, what it adds to each that comes out."""

    def infer(self) -> list[Tensor]:
        """[B, C, *S] and [C, O, *K] -> [B, O, *positions]."""
        x, filters = shape_of(self.x), self.filter_shape()
        if element_of(self.x) != element_of(self.filters):
            raise ValueError(f"operands of {element_of(self.x)} and {element_of(self.filters)}")
        if len(x) <= SPATIAL or len(filters) != len(x):
            raise ValueError(f"a convolution of {list(x)} with filters of {list(filters)}")
        if x[1] != filters[0] and -1 not in (x[1], filters[0]):
            raise ValueError(f"{x[1]} channels, filters of {filters[0]}")
        rank = len(x) - SPATIAL
        self._check(rank)
        places = [
            self._positions(x[SPATIAL + axis], filters[SPATIAL + axis], axis)
            for axis in range(rank)
        ]
        return [tensor(element_of(self.x), (x[0], filters[1], *places))]

    def added(self, axis: int) -> int:
        """Elements that are added at the end of a spatial axis."""
        values = self.output_padding.get_values()
        return values[axis] if values else 0

    def _check(self, rank: int) -> None:
        """See that there is a sensible number for each spatial axis."""
        steps = (*self.strides.get_values(), *self.dilations.get_values())
        if len(steps) != 2 * rank or min(steps) < 1:
            raise ValueError(f"strides and dilations of {list(steps)} for {rank} axes")
        pads = (*self.pads_begin.get_values(), *self.pads_end.get_values())
        if len(pads) != 2 * rank or min(pads) < 0:
            raise ValueError(f"padding of {list(pads)} for {rank} axes")
        added = self.output_padding.get_values()
        if added and (len(added) != rank or min(added) < 0):
            raise ValueError(f"output padding of {list(added)} for {rank} axes")

    def _positions(self, size: int, kernel: int, axis: int) -> int:
        if size < 0 or kernel < 0:
            return -1
        reach = (kernel - 1) * self.dilations.get_values()[axis] + 1
        cut = self.pads_begin.get_values()[axis] + self.pads_end.get_values()[axis]
        found = (size - 1) * self.strides.get_values()[axis] + reach - cut + self.added(axis)
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
        filters = shape_of(self.filters)
        if len(filters) <= SPATIAL:
            raise ValueError(f"filters of {list(filters)} in groups")
        groups, taken, made, *kernel = filters
        channels = shape_of(self.x)[1:SPATIAL]
        if groups < 0 < taken and channels and channels[0] >= 0:
            groups = channels[0] // taken
        return (_times(groups, taken), _times(groups, made), *kernel)


def _times(groups: int, each: int) -> int:
    return -1 if -1 in (groups, each) else groups * each
