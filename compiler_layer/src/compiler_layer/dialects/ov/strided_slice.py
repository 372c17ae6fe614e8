"""Cuts as Python writes them."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def

from compiler_layer.dialects.ov.constant import ints_of
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, shape_of, tensor


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
    """How many of so many elements a slice takes; -1 if their number is not known."""
    return len(range(length)[taken]) if length >= 0 else -1
