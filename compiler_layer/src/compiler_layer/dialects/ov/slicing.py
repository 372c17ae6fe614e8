"""Ops that join tensors and cut them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Self

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, IntegerType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from compiler_layer.dialects.ov.constant import int_of, ints_of
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import (
    Shape,
    Tensor,
    element_of,
    known_axes,
    known_axis,
    length_of,
    shape_of,
    tensor,
)


@irdl_op_definition
class Concat(OvOp):
    """Operands one after the other along an axis."""

    name = "ov.Concat"
    parts = var_operand_def(Tensor)
    axis = prop_def(IntegerAttr)
    output = result_def(Tensor)

    def known_axis(self) -> int:
        """The axis, not negative.

        Raises:
            ValueError: there is no such axis.
        """
        return known_axis(int_value(self.axis), len(shape_of(self.parts[0])))

    def infer(self) -> list[Tensor]:
        """The first operand's shape with the axis summed."""
        axis = self.known_axis()
        shapes = [shape_of(part) for part in self.parts]
        if len({element_of(part) for part in self.parts}) > 1:
            raise ValueError("operands of different element types")
        if len({len(shape) for shape in shapes}) > 1:
            raise ValueError(f"operands of shapes {shapes}")
        dims = [self._join(shapes, i) for i in range(len(shapes[0]))]
        along = [shape[axis] for shape in shapes]
        dims[axis] = -1 if -1 in along else sum(along)
        return [tensor(element_of(self.parts[0]), tuple(dims))]

    def _join(self, shapes: Sequence[Shape], i: int) -> int:
        known = {shape[i] for shape in shapes} - {-1}
        if i != self.known_axis() and len(known) > 1:
            raise ValueError(f"operands of shapes {list(shapes)}")
        return known.pop() if len(known) == 1 else -1


@irdl_op_definition
class Slice(OvOp):
    """Elements from start to stop with a step along axes (opset8)."""

    name = "ov.Slice"
    x = operand_def(Tensor)
    start = operand_def(Tensor)
    stop = operand_def(Tensor)
    step = operand_def(Tensor)
    axes = opt_operand_def(Tensor)
    output = result_def(Tensor)

    def slices(self) -> list[slice] | None:
        """What is taken of each dimension, or None if it is not known."""
        shape = shape_of(self.x)
        start, stop, step = ints_of(self.start), ints_of(self.stop), ints_of(self.step)
        axes = ints_of(self.axes) if self.axes is not None else list(range(len(start or ())))
        if start is None or stop is None or step is None or axes is None:
            return None
        result = [slice(None)] * len(shape)
        for axis, a, b, c in zip(known_axes(axes, len(shape)), start, stop, step, strict=True):
            if shape[axis] < 0:
                return None
            result[axis] = slice(*slice(a, b, c).indices(shape[axis]))
            if c < 0 and b < -shape[axis]:
                result[axis] = slice(result[axis].start, None, c)
        return result

    def infer(self) -> list[Tensor]:
        """The operand's shape, cut."""
        slices = self.slices()
        shape = shape_of(self.x)
        if slices is None:
            axes = ints_of(self.axes) if self.axes is not None else None
            cut = range(len(shape)) if axes is None else known_axes(axes, len(shape))
            return [
                tensor(
                    element_of(self.x), tuple(-1 if i in cut else d for i, d in enumerate(shape))
                )
            ]
        dims = [d if d < 0 else len(range(d)[s]) for d, s in zip(shape, slices, strict=True)]
        return [tensor(element_of(self.x), tuple(dims))]


_MAX_PARTS = 1 << 16
"""Into more parts nothing is cut."""


class _Splitting(OvOp, ABC):
    """Cuts the operand into several along an axis."""

    outputs = var_result_def(Tensor)

    def known_axis(self) -> int:
        """The axis, not negative.

        Raises:
            ValueError: it is not known, or there is no such axis.
        """
        axis = int_of(self.operands[1])
        if axis is None:
            raise ValueError("the axis is no constant")
        return known_axis(axis, len(shape_of(self.operands[0])))

    @classmethod
    def make(
        cls, operands: Sequence[SSAValue | Sequence[SSAValue]], **properties: Attribute
    ) -> Self:
        """Build with inferred result types; see ``OvOp.make``."""
        flat = [operand for operand in operands if isinstance(operand, SSAValue)]
        count = cls._count(flat, properties)
        if not 1 <= count <= _MAX_PARTS:
            raise ValueError(f"{count} parts")
        unknown = [tensor("f32", ())] * count
        op = cls(operands=flat, properties=properties, result_types=[unknown])
        op.refresh_types()
        return op

    @classmethod
    @abstractmethod
    def _count(cls, operands: Sequence[SSAValue], properties: Mapping[str, Attribute]) -> int:
        """How many parts there will be."""


@irdl_op_definition
class Split(_Splitting):
    """Equal parts along ``axis``."""

    name = "ov.Split"
    x = operand_def(Tensor)
    axis = operand_def(Tensor)
    num_splits = prop_def(IntegerAttr)

    @classmethod
    def _count(cls, operands: Sequence[SSAValue], properties: Mapping[str, Attribute]) -> int:
        del operands
        return int_value(properties["num_splits"])

    def infer(self) -> list[Tensor]:
        """The axis divided by the number of parts."""
        axis, count = self.known_axis(), int_value(self.num_splits)
        dims = list(shape_of(self.x))
        if dims[axis] % count and dims[axis] >= 0:
            raise ValueError(f"{dims[axis]} elements in {count} equal parts")
        dims[axis] = -1 if dims[axis] < 0 else dims[axis] // count
        return [tensor(element_of(self.x), tuple(dims))] * count


@irdl_op_definition
class VariadicSplit(_Splitting):
    """Parts of given lengths along ``axis``; one length of -1 is what is left."""

    name = "ov.VariadicSplit"
    x = operand_def(Tensor)
    axis = operand_def(Tensor)
    lengths = operand_def(Tensor)

    @classmethod
    def _count(cls, operands: Sequence[SSAValue], properties: Mapping[str, Attribute]) -> int:
        del properties
        return length_of(operands[2])

    def part_lengths(self) -> list[int]:
        """The lengths, completed where the operand's length is known; -1 where they are not known.

        Raises:
            ValueError: the axis is not known, or the lengths do not fit the operand.
        """
        whole, lengths = shape_of(self.x)[self.known_axis()], ints_of(self.lengths)
        if lengths is None:
            return [-1] * length_of(self.lengths)
        rest = whole - sum(n for n in lengths if n >= 0)
        if lengths.count(-1) > 1 or min(lengths, default=0) < -1:
            raise ValueError(f"parts of {lengths}")
        if whole >= 0 and (rest < 0 or (rest > 0 and -1 not in lengths)):
            raise ValueError(f"parts of {lengths} of {whole} elements")
        if -1 in lengths and whole >= 0:
            lengths[lengths.index(-1)] = rest
        return lengths

    def infer(self) -> list[Tensor]:
        """The operand's shape with each length."""
        lengths, axis = self.part_lengths(), self.known_axis()
        shape = shape_of(self.x)
        return [
            tensor(element_of(self.x), (*shape[:axis], length, *shape[axis + 1 :]))
            for length in lengths
        ]


@irdl_op_definition
class StridedSlice(OvOp):
    """A cut as Python writes it: ``x[a:b:c, None, ...]``, by masks (opset1).

    A 1 in ``begin_mask`` or ``end_mask`` means that there is no bound, in ``new_axis_mask`` that a
    dimension of 1 is inserted, in ``shrink_axis_mask`` that one index is taken and the dimension
    goes, in ``ellipsis_mask`` that all dimensions that are not mentioned stand here.
    """

    name = "ov.StridedSlice"
    x = operand_def(Tensor)
    begin = operand_def(Tensor)
    end = operand_def(Tensor)
    strides = opt_operand_def(Tensor)
    begin_mask = prop_def(DenseArrayBase[IntegerType])
    end_mask = prop_def(DenseArrayBase[IntegerType])
    new_axis_mask = prop_def(DenseArrayBase[IntegerType])
    shrink_axis_mask = prop_def(DenseArrayBase[IntegerType])
    ellipsis_mask = prop_def(DenseArrayBase[IntegerType])
    output = result_def(Tensor)

    def index(
        self, begin: Sequence[int], end: Sequence[int], strides: Sequence[int] | None
    ) -> list[slice | int | EllipsisType | None]:
        """What numpy would be indexed with."""
        masks = (
            self.begin_mask,
            self.end_mask,
            self.new_axis_mask,
            self.shrink_axis_mask,
            self.ellipsis_mask,
        )
        flags = [[int(v) for v in mask.get_values()] for mask in masks]
        steps = strides or [1] * len(begin)
        return [
            self._entry(slice(*bounds), [flag[i : i + 1] == [1] for flag in flags])
            for i, bounds in enumerate(zip(begin, end, steps, strict=True))
        ]

    @staticmethod
    def _entry(taken: slice, flags: Sequence[bool]) -> slice | int | EllipsisType | None:
        no_begin, no_end, new_axis, shrink_axis, ellipsis = flags
        if ellipsis:
            return ...
        if new_axis:
            return None
        if shrink_axis:
            return taken.start
        begin, end = None if no_begin else taken.start, None if no_end else taken.stop
        return slice(begin, end, taken.step)

    def infer(self) -> list[Tensor]:
        """What numpy says of an array of that shape."""
        begin, end = ints_of(self.begin), ints_of(self.end)
        strides = ints_of(self.strides) if self.strides is not None else None
        if begin is None or end is None or (self.strides is not None and strides is None):
            raise ValueError("the bounds are no constants")
        index = self.index(begin, end, strides)
        return [tensor(element_of(self.x), _indexed(shape_of(self.x), index))]


def _indexed(shape: Shape, index: Sequence[slice | int | EllipsisType | None]) -> Shape:
    """The shape of an array indexed with slices, numbers, new axes and an ellipsis.

    Raises:
        ValueError: there are more of them than dimensions, or a number is beyond the end.
    """
    rest = len(shape) - sum(isinstance(entry, slice | int) for entry in index)
    if rest < 0 or index.count(...) > 1:
        raise ValueError(f"{len(index)} indices of {list(shape)}")
    whole = list(index) if ... in index else [*index, ...]
    at = whole.index(...)
    left = iter(shape)
    dims: list[int] = []
    for entry in (*whole[:at], *[slice(None)] * rest, *whole[at + 1 :]):
        if isinstance(entry, slice):
            dims.append(_cut(next(left), entry))
        elif isinstance(entry, int):
            length = next(left)
            if length >= 0 and not -length <= entry < length:
                raise ValueError(f"index {entry} of {length} elements")
        else:
            dims.append(1)
    return tuple(dims)


def _cut(length: int, taken: slice) -> int:
    """How many of so many elements a slice takes; -1 if that depends on an unknown length."""
    if length >= 0:
        return len(range(length)[taken])
    small, large = (len(range(guess)[taken]) for guess in (1 << 20, 1 << 21))
    return small if small == large else -1
