"""Ops that join tensors and cut them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Self

from xdsl.dialects.builtin import IntegerAttr
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
        cuts = self._cuts()
        if cuts is None:
            return None
        known = [cut for cut in cuts if cut is not None]
        return known if len(known) == len(cuts) else None

    def _cuts(self) -> list[slice | None] | None:
        """What is taken of each dimension, None where that depends on an unknown length.

        None altogether if the bounds are not known.
        """
        shape = shape_of(self.x)
        start, stop, step = ints_of(self.start), ints_of(self.stop), ints_of(self.step)
        axes = ints_of(self.axes) if self.axes is not None else list(range(len(start or ())))
        if start is None or stop is None or step is None or axes is None:
            return None
        result: list[slice | None] = [slice(None)] * len(shape)
        for axis, *bounds in zip(known_axes(axes, len(shape)), start, stop, step, strict=True):
            result[axis] = _within(shape[axis], *bounds)
        return result

    def infer(self) -> list[Tensor]:
        """The operand's shape, cut."""
        cuts = self._cuts()
        shape = shape_of(self.x)
        if cuts is None:
            axes = ints_of(self.axes) if self.axes is not None else None
            cut = range(len(shape)) if axes is None else known_axes(axes, len(shape))
            dims = [-1 if i in cut else d for i, d in enumerate(shape)]
        else:
            dims = [
                -1 if s is None or d < 0 else len(range(d)[s])
                for d, s in zip(shape, cuts, strict=True)
            ]
        return [tensor(element_of(self.x), tuple(dims))]


def _within(length: int, start: int, stop: int, step: int) -> slice | None:
    """What bounds take of so many elements; None if the length is not known."""
    if length < 0:
        return None
    taken = slice(*slice(start, stop, step).indices(length))
    # Going backwards, a stop before the first element means "to the very first".
    return slice(taken.start, None, step) if step < 0 and stop < -length else taken


@irdl_op_definition
class Roll(OvOp):
    """Elements moved along axes, what leaves at an end coming in at the other (opset7)."""

    name = "ov.Roll"
    x = operand_def(Tensor)
    shift = operand_def(Tensor)
    axes = operand_def(Tensor)
    output = result_def(Tensor)

    def shifts(self) -> dict[int, int] | None:
        """By how much each axis that moves does, to the right; None if that is not known.

        A single number is that of all axes; those of an axis that is named twice add up.

        Raises:
            ValueError: there is no such axis, or not a number for each.
        """
        shift, axes = ints_of(self.shift), ints_of(self.axes)
        if shift is None or axes is None:
            return None
        counts = shift * len(axes) if len(shift) == 1 else shift
        total = dict[int, int]()
        known = [known_axis(axis, len(shape_of(self.x))) for axis in axes]
        for axis, count in zip(known, counts, strict=True):
            total[axis] = total.get(axis, 0) + count
        return total

    def infer(self) -> list[Tensor]:
        """The operand's type."""
        self.shifts()
        return [tensor(element_of(self.x), shape_of(self.x))]


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
