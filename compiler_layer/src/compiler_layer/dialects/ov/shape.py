"""Ops that change shapes, also by repeating or adding elements, or that compute with shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import BoolAttr, StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
)

from compiler_layer.dialects.ov.constant import ints_of, values_of
from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import (
    Shape,
    Tensor,
    broadcast,
    element_of,
    is_static,
    known_axes,
    length_of,
    shape_of,
    tensor,
    unknown_dims,
)
from compiler_layer.elements import RAW_FLOATS, convert_values


class ShapeOf(OvOp):
    """Shape of the operand, a vector of i64 or i32 (opset3)."""

    x = operand_def(Tensor)
    output_type = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer one integer per dimension."""
        return [tensor(self.output_type.data, (len(shape_of(self.x)),))]


class Reshape(OvOp):
    """Change of the shape; in the pattern -1 is inferred, and 0 may keep a dimension."""

    x = operand_def(Tensor)
    pattern = operand_def(Tensor)
    special_zero = prop_def(BoolAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the completed pattern."""
        pattern = ints_of(self.pattern)
        if pattern is None:
            return [tensor(element_of(self.x), unknown_dims(length_of(self.pattern)))]
        source = shape_of(self.x)
        dims = self.completed(pattern, source)
        if is_static(source) and is_static(dims) and math.prod(source) != math.prod(dims):
            raise ValueError(f"{source} cannot be reshaped to {pattern}")
        return [tensor(element_of(self.x), tuple(dims))]

    def completed(self, pattern: Sequence[int], source: Shape) -> list[int]:
        """Return the pattern with kept dimensions, and with the inferred one if it is known.

        Raises:
            ValueError: the elements do not fit the pattern.
        """
        keeps = int_value(self.special_zero)
        kept = {i for i, d in enumerate(pattern) if keeps and d == 0}
        if any(i >= len(source) for i in kept):
            raise ValueError(f"{pattern} keeps a dimension that {list(source)} does not have")
        if pattern.count(-1) > 1:
            raise ValueError(f"{pattern} has more than one -1")
        dims = [source[i] if i in kept else d for i, d in enumerate(pattern)]
        # Kept dimensions are on both sides: they may be unknown, or 0.
        shared = [d for i, d in enumerate(source) if i not in kept]
        if -1 in pattern and (is_static(shared) or 0 in shared):
            made = math.prod(d for i, d in enumerate(pattern) if d != -1 and i not in kept)
            if made and math.prod(shared) % made:
                raise ValueError(f"{source} cannot be reshaped to {pattern}")
            dims[pattern.index(-1)] = math.prod(shared) // made if made else 0
        return dims


class Transpose(OvOp):
    """Permutation of the dimensions."""

    x = operand_def(Tensor)
    order = operand_def(Tensor)
    output = result_def(Tensor)

    def permutation(self) -> list[int]:
        """Return the order; an empty operand reverses the dimensions.

        Raises:
            ValueError: the order is not known, or not a permutation.
        """
        rank = len(shape_of(self.x))
        order = ints_of(self.order)
        if order is None:
            raise ValueError("the order is not a constant")
        order = order or list(reversed(range(rank)))
        if sorted(order) != list(range(rank)):
            raise ValueError(f"{order} is not a permutation of {rank} dimensions")
        return order

    def infer(self) -> list[Tensor]:
        """Infer the operand's dimensions in that order."""
        shape = shape_of(self.x)
        return [tensor(element_of(self.x), tuple(shape[i] for i in self.permutation()))]


class Unsqueeze(OvOp):
    """Insertion of dimensions of 1 at ``axes`` of the result."""

    x = operand_def(Tensor)
    axes = operand_def(Tensor)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the operand's shape with ones at the axes."""
        axes = ints_of(self.axes)
        if axes is None:
            raise ValueError("the axes are not a constant")
        rank = len(shape_of(self.x)) + len(axes)
        inserted = known_axes(axes, rank)
        rest = iter(shape_of(self.x))
        shape = tuple(1 if i in inserted else next(rest) for i in range(rank))
        return [tensor(element_of(self.x), shape)]


class Squeeze(OvOp):
    """Removal of dimensions of 1: at ``axes``, or all; a longer one at an axis stays."""

    x = operand_def(Tensor)
    axes = opt_operand_def(Tensor)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the operand's shape without the removed dimensions."""
        shape = shape_of(self.x)
        # A dynamic dimension at an axis counts as 1, as in OpenVINO.
        removed = [i for i in self._removed(shape) if shape[i] in (1, -1)]
        kept = tuple(d for i, d in enumerate(shape) if i not in removed)
        return [tensor(element_of(self.x), kept)]

    def _removed(self, shape: Shape) -> list[int]:
        if self.axes is None:
            if not is_static(shape):
                raise ValueError("no axes, and the dimensions of 1 are not known")
            return [i for i, d in enumerate(shape) if d == 1]
        axes = ints_of(self.axes)
        if axes is None:
            raise ValueError("the axes are not a constant")
        return known_axes(axes, len(shape))


class Broadcast(OvOp):
    """Repetition of elements to a target shape; in mode bidirectional either side may grow."""

    x = operand_def(Tensor)
    target_shape = operand_def(Tensor)
    mode = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the target shape."""
        target = ints_of(self.target_shape)
        source = shape_of(self.x)
        if target is None:
            unknown = unknown_dims(length_of(self.target_shape))
            return [tensor(element_of(self.x), broadcast(source, unknown))]
        if min(target, default=0) < 0:
            raise ValueError(f"the target shape {target} has a negative dimension")
        if self.mode.data == "bidirectional":
            return [tensor(element_of(self.x), broadcast(source, tuple(target)))]
        if is_static(source) and broadcast(source, tuple(target)) != tuple(target):
            raise ValueError(f"{list(source)} does not broadcast to {target}")
        return [tensor(element_of(self.x), tuple(target))]


class Range(OvOp):
    """Sequence start, start + step … below stop (opset4)."""

    start = operand_def(Tensor)
    stop = operand_def(Tensor)
    step = operand_def(Tensor)
    output_type = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer a vector whose length follows from the values."""
        bounds = [self._number(v) for v in (self.start, self.stop, self.step)]
        known = [bound for bound in bounds if bound is not None]
        if len(known) < len(bounds):
            return [tensor(self.output_type.data, (-1,))]
        start, stop, step = known
        if step == 0 or not all(map(math.isfinite, known)):
            raise ValueError(f"no range from {start} to {stop} in steps of {step}")
        # Integer division is exact for integers of any size.
        whole = all(isinstance(bound, int) for bound in known)
        steps = -((start - stop) // step) if whole else math.ceil((stop - start) / step)
        return [tensor(self.output_type.data, (max(0, int(steps)),))]

    @staticmethod
    def _number(value: SSAValue) -> float | None:
        """Return the only element of a constant, or None if it is not known."""
        values = values_of(value)
        if values is None:
            return None
        if values.size != 1:
            raise ValueError(f"expected one number, got {values.size}")
        element = element_of(value)
        wide = convert_values(values, element, "f32") if element in RAW_FLOATS else values
        return wide.reshape(-1)[0].item()


class Tile(OvOp):
    """Repetition of the tensor along each dimension (opset1)."""

    x = operand_def(Tensor)
    repeats = operand_def(Tensor)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer dimensions times repeats; the shorter list is extended with leading ones."""
        shape, repeats = shape_of(self.x), ints_of(self.repeats)
        if repeats is None:
            length = length_of(self.repeats)
            rank = max(len(shape), length) if length >= 0 else -1
            return [tensor(element_of(self.x), unknown_dims(rank))]
        if min(repeats, default=0) < 0:
            raise ValueError(f"repeats are negative: {repeats}")
        rank = max(len(shape), len(repeats))
        dims = (1,) * (rank - len(shape)) + shape
        counts = [1] * (rank - len(repeats)) + repeats
        tiled = tuple(-1 if d < 0 else d * n for d, n in zip(dims, counts, strict=True))
        return [tensor(element_of(self.x), tiled)]


class Pad(OvOp):
    """Padding of each dimension (opset12); negative numbers crop.

    ``pad_mode`` is "constant", "edge", "reflect" or "symmetric".
    """

    x = operand_def(Tensor)
    pads_begin = operand_def(Tensor)
    pads_end = operand_def(Tensor)
    value = opt_operand_def(Tensor)
    pad_mode = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer dimensions plus the padding at both ends."""
        shape = shape_of(self.x)
        begin, end = self._pads(self.pads_begin), self._pads(self.pads_end)
        if begin is None or end is None:
            return [tensor(element_of(self.x), (-1,) * len(shape))]
        dims = [-1 if d < 0 else d + b + e for d, b, e in zip(shape, begin, end, strict=True)]
        if any(dim < 0 <= d for dim, d in zip(dims, shape, strict=True)):
            raise ValueError(f"padding {begin} and {end} removes more elements than {shape} has")
        return [tensor(element_of(self.x), tuple(dims))]

    def _pads(self, value: SSAValue) -> list[int] | None:
        pads = ints_of(value)
        return pads * len(shape_of(self.x)) if pads is not None and len(pads) == 1 else pads
