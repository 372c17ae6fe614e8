"""Comparisons, logical operations, and bitwise operations on integers.

Source: OpenVINO operation sets; opset of each op in ``frontends.openvino_ir.rules``.
"""

from __future__ import annotations

from abc import ABC

from xdsl.irdl import operand_def, result_def

from compiler_layer.dialects.ov.elementwise import Binary, Unary
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Tensor, broadcast, element_of, shape_of, tensor


class Comparison(OvOp, ABC):
    """y = a ? b, a boolean for each pair of elements."""

    a = operand_def(Tensor)
    b = operand_def(Tensor)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer booleans of the broadcast shape."""
        if element_of(self.a) != element_of(self.b):
            raise ValueError(f"operand types {element_of(self.a)} and {element_of(self.b)} differ")
        return [tensor("boolean", broadcast(shape_of(self.a), shape_of(self.b)))]


class BitwiseAnd(Binary):
    """a & b; for booleans, the logical and."""


class LogicalAnd(Binary):
    """a and b."""


class Equal(Comparison):
    """a == b."""


class Less(Comparison):
    """a < b."""


class LessEqual(Comparison):
    """a <= b."""


class Greater(Comparison):
    """a > b."""


class GreaterEqual(Comparison):
    """a >= b."""


class NotEqual(Comparison):
    """a != b."""


class LogicalOr(Binary):
    """a or b."""


class LogicalXor(Binary):
    """Exclusive or of a and b."""


class LogicalNot(Unary):
    """not a."""


class BitwiseOr(Binary):
    """a | b; for booleans, the logical or."""


class BitwiseXor(Binary):
    """a ^ b; for booleans, the exclusive or."""


class BitwiseNot(Unary):
    """~a; for booleans, the negation."""


class BitwiseLeftShift(Binary):
    """a << b."""


class BitwiseRightShift(Binary):
    """a >> b; the sign is kept."""
