"""Matmul."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr
from xdsl.irdl import operand_def, prop_def, result_def

from compiler_layer.dialects.ov.op import OvOp, int_value
from compiler_layer.dialects.ov.types import Shape, Tensor, broadcast, element_of, shape_of, tensor


class MatMul(OvOp):
    """Matmul over the last two dimensions; leading dimensions broadcast (opset1)."""

    a = operand_def(Tensor)
    b = operand_def(Tensor)
    transpose_a = prop_def(BoolAttr)
    transpose_b = prop_def(BoolAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer [..., M, N] from [..., M, K] x [..., K, N]; a 1-D operand is a vector."""
        if element_of(self.a) != element_of(self.b):
            raise ValueError(f"operand types {element_of(self.a)} and {element_of(self.b)} differ")
        left, right = shape_of(self.a), shape_of(self.b)
        if not left or not right:
            raise ValueError("an operand is a scalar")
        a = self._matrix(left, bool(int_value(self.transpose_a)), column=False)
        b = self._matrix(right, bool(int_value(self.transpose_b)), column=True)
        if a[-1] != b[-2] and -1 not in (a[-1], b[-2]):
            raise ValueError(f"inner dimensions {a[-1]} and {b[-2]} differ")
        dims = [*broadcast(a[:-2] or (1,), b[:-2] or (1,))] if len(a) + len(b) > 4 else []
        rows = [a[-2]] if len(left) > 1 else []
        cols = [b[-1]] if len(right) > 1 else []
        return [tensor(element_of(self.a), (*dims, *rows, *cols))]

    @staticmethod
    def _matrix(shape: Shape, transposed: bool, column: bool) -> Shape:
        if len(shape) == 1:
            return (*shape, 1) if column else (1, *shape)
        return (*shape[:-2], shape[-1], shape[-2]) if transposed else shape
