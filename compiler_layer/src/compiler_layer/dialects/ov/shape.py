"""Ops that change shapes and move elements, and those that compute with shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, StringAttr
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

from compiler_layer.dialects.ov.constant import ints_of
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import (
    Shape,
    Tensor,
    broadcast,
    element_of,
    is_static,
    shape_of,
    tensor,
)


@irdl_op_definition
class ShapeOf(OvOp):
    """The operand's shape, a vector of i64 or i32 (opset3)."""

    name = "ov.ShapeOf"
    x = operand_def(Tensor)
    output_type = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """One integer per dimension."""
        return [tensor(self.output_type.data, (len(shape_of(self.x)),))]


@irdl_op_definition
class Reshape(OvOp):
    """The same elements in another shape; in the pattern -1 is what is left, 0 may mean "keep"."""

    name = "ov.Reshape"
    x = operand_def(Tensor)
    pattern = operand_def(Tensor)
    special_zero = prop_def(BoolAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """The pattern, completed."""
        pattern = ints_of(self.pattern)
        if pattern is None:
            return [tensor(element_of(self.x), (-1,) * shape_of(self.pattern)[0])]
        source = shape_of(self.x)
        dims = list(pattern)
        if int_value(self.special_zero):
            dims = [source[i] if d == 0 else d for i, d in enumerate(dims)]
        if -1 in pattern and is_static(source) and dims.count(-1) == 1:
            rest = math.prod(d for d in dims if d != -1)
            if rest and math.prod(source) % rest:
                raise ValueError(f"{source} cannot be reshaped to {pattern}")
            dims[dims.index(-1)] = math.prod(source) // rest if rest else 0
        if is_static(source) and is_static(dims) and math.prod(source) != math.prod(dims):
            raise ValueError(f"{source} cannot be reshaped to {pattern}")
        return [tensor(element_of(self.x), tuple(dims))]


@irdl_op_definition
class Transpose(OvOp):
    """Dimensions in another order."""

    name = "ov.Transpose"
    x = operand_def(Tensor)
    order = operand_def(Tensor)
    output = result_def(Tensor)

    def permutation(self) -> list[int]:
        """The order; an empty one reverses.

        Raises:
            ValueError: it is not known, or no permutation.
        """
        rank = len(shape_of(self.x))
        order = ints_of(self.order)
        if order is None:
            raise ValueError("the order is no constant")
        order = order or list(reversed(range(rank)))
        if sorted(order) != list(range(rank)):
            raise ValueError(f"{order} is no permutation of {rank} dimensions")
        return order

    def infer(self) -> list[Tensor]:
        """The operand's dimensions in that order."""
        shape = shape_of(self.x)
        return [tensor(element_of(self.x), tuple(shape[i] for i in self.permutation()))]


@irdl_op_definition
class Unsqueeze(OvOp):
    """Inserts dimensions of 1 at ``axes`` of the result."""

    name = "ov.Unsqueeze"
    x = operand_def(Tensor)
    axes = operand_def(Tensor)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """The operand's shape with ones at the axes."""
        axes = ints_of(self.axes)
        if axes is None:
            raise ValueError("the axes are no constant")
        rank = len(shape_of(self.x)) + len(axes)
        inserted = {axis % rank for axis in axes}
        rest = iter(shape_of(self.x))
        shape = tuple(1 if i in inserted else next(rest) for i in range(rank))
        return [tensor(element_of(self.x), shape)]


@irdl_op_definition
class Squeeze(OvOp):
    """Removes dimensions of 1: those at ``axes``, or all."""

    name = "ov.Squeeze"
    x = operand_def(Tensor)
    axes = opt_operand_def(Tensor)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """The operand's shape without them."""
        shape = shape_of(self.x)
        axes = ints_of(self.axes) if self.axes is not None else None
        if axes is None:
            removed = {i for i, d in enumerate(shape) if d == 1}
        else:
            removed = {axis % len(shape) for axis in axes}
        kept = tuple(d for i, d in enumerate(shape) if i not in removed)
        return [tensor(element_of(self.x), kept)]


@irdl_op_definition
class Broadcast(OvOp):
    """Repeats elements to reach a shape; in mode bidirectional either side may grow."""

    name = "ov.Broadcast"
    x = operand_def(Tensor)
    target_shape = operand_def(Tensor)
    mode = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """The target shape."""
        target = ints_of(self.target_shape)
        source = shape_of(self.x)
        if target is None:
            rank = shape_of(self.target_shape)[0]
            return [tensor(element_of(self.x), (-1,) * max(rank, len(source)))]
        if self.mode.data == "bidirectional":
            return [tensor(element_of(self.x), broadcast(source, tuple(target)))]
        return [tensor(element_of(self.x), tuple(target))]


@irdl_op_definition
class Concat(OvOp):
    """Operands one after the other along an axis."""

    name = "ov.Concat"
    parts = var_operand_def(Tensor)
    axis = prop_def(IntegerAttr)
    output = result_def(Tensor)

    def known_axis(self) -> int:
        """The axis, not negative."""
        return int_value(self.axis) % len(shape_of(self.parts[0]))

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
        for axis, a, b, c in zip(axes, start, stop, step, strict=True):
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
            cut = set(range(len(shape))) if axes is None else {a % len(shape) for a in axes}
            return [
                tensor(
                    element_of(self.x), tuple(-1 if i in cut else d for i, d in enumerate(shape))
                )
            ]
        dims = [d if d < 0 else len(range(d)[s]) for d, s in zip(shape, slices, strict=True)]
        return [tensor(element_of(self.x), tuple(dims))]


class _Splitting(OvOp):
    """Cuts the operand into several along an axis."""

    outputs = var_result_def(Tensor)

    @classmethod
    def _make_with(
        cls, operands: Sequence[SSAValue], count: int, properties: dict[str, Attribute]
    ) -> Self:
        unknown = tensor("f32", ())
        op = cls(operands=operands, properties=properties, result_types=[[unknown] * count])
        op.refresh_types()
        return op


@irdl_op_definition
class Split(_Splitting):
    """Equal parts along ``axis``."""

    name = "ov.Split"
    x = operand_def(Tensor)
    axis = operand_def(Tensor)
    num_splits = prop_def(IntegerAttr)

    @classmethod
    def make(
        cls, operands: Sequence[SSAValue | Sequence[SSAValue]], **properties: Attribute
    ) -> Self:
        """Build with inferred result types; see ``OvOp.make``."""
        flat = [o for o in operands if isinstance(o, SSAValue)]
        return cls._make_with(flat, int_value(properties["num_splits"]), properties)

    def infer(self) -> list[Tensor]:
        """The axis divided by the number of parts."""
        axis, count = ints_of(self.axis), int_value(self.num_splits)
        if axis is None:
            raise ValueError("the axis is no constant")
        dims = list(shape_of(self.x))
        if dims[axis[0]] % count and dims[axis[0]] >= 0:
            raise ValueError(f"{dims[axis[0]]} elements in {count} equal parts")
        dims[axis[0]] = -1 if dims[axis[0]] < 0 else dims[axis[0]] // count
        return [tensor(element_of(self.x), tuple(dims))] * count


@irdl_op_definition
class VariadicSplit(_Splitting):
    """Parts of given lengths along ``axis``; one length of -1 is what is left."""

    name = "ov.VariadicSplit"
    x = operand_def(Tensor)
    axis = operand_def(Tensor)
    lengths = operand_def(Tensor)

    @classmethod
    def make(
        cls, operands: Sequence[SSAValue | Sequence[SSAValue]], **properties: Attribute
    ) -> Self:
        """Build with inferred result types; see ``OvOp.make``."""
        flat = [o for o in operands if isinstance(o, SSAValue)]
        return cls._make_with(flat, shape_of(flat[2])[0], properties)

    def part_lengths(self) -> list[int]:
        """The lengths, completed where the operand's length is known.

        Raises:
            ValueError: axis or lengths are not known.
        """
        axis, lengths = ints_of(self.axis), ints_of(self.lengths)
        if axis is None or lengths is None:
            raise ValueError("axis or lengths are no constants")
        whole = shape_of(self.x)[axis[0]]
        if -1 in lengths and whole >= 0:
            lengths[lengths.index(-1)] = whole - sum(n for n in lengths if n >= 0)
        return lengths

    def infer(self) -> list[Tensor]:
        """The operand's shape with each length."""
        lengths, axis = self.part_lengths(), (ints_of(self.axis) or [0])[0]
        shape = list(shape_of(self.x))
        axis %= len(shape)
        return [
            tensor(element_of(self.x), (*shape[:axis], length, *shape[axis + 1 :]))
            for length in lengths
        ]


@irdl_op_definition
class Range(OvOp):
    """start, start + step … below stop (opset4)."""

    name = "ov.Range"
    start = operand_def(Tensor)
    stop = operand_def(Tensor)
    step = operand_def(Tensor)
    output_type = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """A vector whose length follows from the values."""
        bounds = [ints_of(v) for v in (self.start, self.stop, self.step)]
        if any(bound is None for bound in bounds):
            return [tensor(self.output_type.data, (-1,))]
        start, stop, step = (bound[0] for bound in bounds if bound is not None)
        return [tensor(self.output_type.data, (len(range(start, stop, step)),))]
