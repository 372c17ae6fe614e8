"""Ops that concatenate tensors, and ops that cut them."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
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


class Concat(OvOp):
    """Concatenation of the operands along an axis."""

    parts = var_operand_def(Tensor)
    axis = prop_def(IntegerAttr)
    output = result_def(Tensor)

    def known_axis(self) -> int:
        """Return the axis, not negative.

        Raises:
            ValueError: the axis does not exist.
        """
        return known_axis(int_value(self.axis), len(shape_of(self.parts[0])))

    def infer(self) -> list[Tensor]:
        """Infer the first operand's shape with the axis summed."""
        axis = self.known_axis()
        shapes = [shape_of(part) for part in self.parts]
        if len({element_of(part) for part in self.parts}) > 1:
            raise ValueError("the operands differ in element type")
        if len({len(shape) for shape in shapes}) > 1:
            raise ValueError(f"operand shapes {shapes} differ in rank")
        dims = [self._join(shapes, i) for i in range(len(shapes[0]))]
        along = [shape[axis] for shape in shapes]
        dims[axis] = -1 if -1 in along else sum(along)
        return [tensor(element_of(self.parts[0]), tuple(dims))]

    def _join(self, shapes: Sequence[Shape], i: int) -> int:
        known = {shape[i] for shape in shapes} - {-1}
        if i != self.known_axis() and len(known) > 1:
            raise ValueError(f"operand shapes {list(shapes)} do not fit")
        return known.pop() if len(known) == 1 else -1


class Slice(OvOp):
    """Elements from start to stop with a step along axes (opset8)."""

    x = operand_def(Tensor)
    start = operand_def(Tensor)
    stop = operand_def(Tensor)
    step = operand_def(Tensor)
    axes = opt_operand_def(Tensor)
    output = result_def(Tensor)

    def slices(self) -> list[slice] | None:
        """Return the slice of each dimension, or None if one is not known."""
        cuts = self._cuts()
        if cuts is None:
            return None
        known = [cut for cut in cuts if cut is not None]
        return known if len(known) == len(cuts) else None

    def _cuts(self) -> list[slice | None] | None:
        """Return the slice of each dimension; None for one that depends on an unknown length.

        Return None if the bounds are not known.
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
        """Infer the shape of the slice."""
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
    """Return the slice of ``length`` elements, or None if the length is not known."""
    if length < 0:
        return None
    taken = slice(*slice(start, stop, step).indices(length))
    # Backwards, a stop before the first element means "up to and including the first".
    return slice(taken.start, None, step) if step < 0 and stop < -length else taken


class Roll(OvOp):
    """Rotation of elements along axes: those shifted out at one end enter at the other (opset7)."""

    x = operand_def(Tensor)
    shift = operand_def(Tensor)
    axes = operand_def(Tensor)
    output = result_def(Tensor)

    def shifts(self) -> dict[int, int] | None:
        """Return the shift of each shifted axis, to the right; None if it is not known.

        A single number applies to all axes; shifts of an axis that is named twice add up.

        Raises:
            ValueError: an axis does not exist, or the numbers of shifts and axes differ.
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
        """Infer the operand's type."""
        self.shifts()
        return [tensor(element_of(self.x), shape_of(self.x))]


_MAX_PARTS = 1 << 16
"""Maximum number of parts of a split."""


class _Splitting(OvOp, ABC):
    """Split of the operand into several parts along an axis."""

    outputs = var_result_def(Tensor)

    def known_axis(self) -> int:
        """Return the axis, not negative.

        Raises:
            ValueError: the axis is not known, or does not exist.
        """
        axis = int_of(self.operands[1])
        if axis is None:
            raise ValueError("the axis is not a constant")
        return known_axis(axis, len(shape_of(self.operands[0])))

    @classmethod
    def make(
        cls, operands: Sequence[SSAValue | Sequence[SSAValue]], **properties: Attribute
    ) -> Self:
        """Build an op with inferred result types; see ``OvOp.make``."""
        draft = cls(operands=operands, properties=properties, result_types=[[]])
        kinds = draft.infer()
        draft.erase()
        return cls(operands=operands, properties=properties, result_types=[kinds])

    @staticmethod
    def _checked(count: int) -> int:
        if not 1 <= count <= _MAX_PARTS:
            raise ValueError(f"a split into {count} parts is not supported")
        return count


class Split(_Splitting):
    """Split into equal parts along ``axis``."""

    x = operand_def(Tensor)
    axis = operand_def(Tensor)
    num_splits = prop_def(IntegerAttr)

    def infer(self) -> list[Tensor]:
        """Infer the axis divided by the number of parts."""
        count, axis = self._checked(int_value(self.num_splits)), self.known_axis()
        dims = list(shape_of(self.x))
        if dims[axis] % count and dims[axis] >= 0:
            raise ValueError(f"{dims[axis]} elements do not split into {count} equal parts")
        dims[axis] = -1 if dims[axis] < 0 else dims[axis] // count
        return [tensor(element_of(self.x), tuple(dims))] * count


class VariadicSplit(_Splitting):
    """Split into parts of given lengths along ``axis``; one length of -1 is inferred."""

    x = operand_def(Tensor)
    axis = operand_def(Tensor)
    lengths = operand_def(Tensor)

    def part_lengths(self) -> list[int]:
        """Return the lengths, -1 for unknown ones; the inferred one needs the operand's length.

        Raises:
            ValueError: the axis is not known, or the lengths do not fit the operand.
        """
        count = self._checked(length_of(self.lengths))
        whole, lengths = shape_of(self.x)[self.known_axis()], ints_of(self.lengths)
        if lengths is None:
            return [-1] * count
        rest = whole - sum(n for n in lengths if n >= 0)
        if lengths.count(-1) > 1 or min(lengths, default=0) < -1:
            raise ValueError(f"{lengths} are not lengths of parts")
        if whole >= 0 and (rest < 0 or (rest > 0 and -1 not in lengths)):
            raise ValueError(f"parts of {lengths} do not fit {whole} elements")
        if -1 in lengths and whole >= 0:
            lengths[lengths.index(-1)] = rest
        return lengths

    def infer(self) -> list[Tensor]:
        """Infer the operand's shape with each length."""
        lengths, axis = self.part_lengths(), self.known_axis()
        shape = shape_of(self.x)
        return [
            tensor(element_of(self.x), (*shape[:axis], length, *shape[axis + 1 :]))
            for length in lengths
        ]
