"""Slicing with Python's syntax."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def

from compiler_layer.dialects.ov.constant import ints_of
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, shape_of, tensor


class StridedSlice(OvOp):
    """Python slice ``x[a:b:c, None, ...]``, encoded by masks (opset1).

    A 1 in ``begin_mask`` or ``end_mask`` means no bound; in ``new_axis_mask``, an inserted
    dimension of 1; in ``shrink_axis_mask``, a single index that removes the dimension; in
    ``ellipsis_mask``, all dimensions without an entry.
    """

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
        """Return the equivalent numpy index."""
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
        """Infer the shape of the equivalent numpy array."""
        begin, end = ints_of(self.begin), ints_of(self.end)
        strides = ints_of(self.strides) if self.strides is not None else None
        if begin is None or end is None or (self.strides is not None and strides is None):
            raise ValueError("the bounds are not constants")
        index = self.index(begin, end, strides)
        return [tensor(element_of(self.x), _indexed(shape_of(self.x), index))]


def _indexed(shape: Shape, index: Sequence[slice | int | EllipsisType | None]) -> Shape:
    """Return the shape of an array indexed with slices, numbers, new axes and an ellipsis.

    Raises:
        ValueError: the index has more entries than dimensions, or a number out of range.
    """
    rest = len(shape) - sum(isinstance(entry, slice | int) for entry in index)
    if rest < 0 or index.count(...) > 1:
        raise ValueError(f"{len(index)} indices do not fit {list(shape)}")
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
                raise ValueError(f"index {entry} is out of range for {length} elements")
        else:
            dims.append(1)
    return tuple(dims)


def _cut(length: int, taken: slice) -> int:
    """Return the number of elements that a slice selects; -1 if the length is not known."""
    return len(range(length)[taken]) if length >= 0 else -1
