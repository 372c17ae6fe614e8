"""Ops that enlarge tensors by repeating or adding elements."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def

from compiler_layer.dialects.ov.constant import ints_of
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import (
    Tensor,
    element_of,
    length_of,
    shape_of,
    tensor,
    unknown_dims,
)


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
