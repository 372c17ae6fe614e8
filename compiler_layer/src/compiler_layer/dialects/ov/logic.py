"""Comparisons, logical operations, and bitwise operations on integers.

Source: OpenVINO operation sets; opset of each op in ``frontends.openvino_ir.rules``.
"""

from __future__ import annotations

from abc import ABC

from xdsl.irdl import irdl_op_definition, operand_def, result_def

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


@irdl_op_definition
class BitwiseAnd(Binary):
    """a & b; for booleans, the logical and."""

    name = "ov.BitwiseAnd"


@irdl_op_definition
class LogicalAnd(Binary):
    """a and b."""

    name = "ov.LogicalAnd"


@irdl_op_definition
class Equal(Comparison):
    """a == b."""

    name = "ov.Equal"


@irdl_op_definition
class Less(Comparison):
    """a < b."""

    name = "ov.Less"


@irdl_op_definition
class LessEqual(Comparison):
    """a <= b."""

    name = "ov.LessEqual"


@irdl_op_definition
class Greater(Comparison):
    """a > b."""

    name = "ov.Greater"


@irdl_op_definition
class GreaterEqual(Comparison):
    """a >= b."""

    name = "ov.GreaterEqual"


@irdl_op_definition
class NotEqual(Comparison):
    """a != b."""

    name = "ov.NotEqual"


@irdl_op_definition
class LogicalOr(Binary):
    """a or b."""

    name = "ov.LogicalOr"


@irdl_op_definition
class LogicalXor(Binary):
    """Exclusive or of a and b."""

    name = "ov.LogicalXor"


@irdl_op_definition
class LogicalNot(Unary):
    """not a."""

    name = "ov.LogicalNot"


@irdl_op_definition
class BitwiseOr(Binary):
    """a | b; for booleans, the logical or."""

    name = "ov.BitwiseOr"


@irdl_op_definition
class BitwiseXor(Binary):
    """a ^ b; for booleans, the exclusive or."""

    name = "ov.BitwiseXor"


@irdl_op_definition
class BitwiseNot(Unary):
    """~a; for booleans, the negation."""

    name = "ov.BitwiseNot"


@irdl_op_definition
class BitwiseLeftShift(Binary):
    """a << b."""

    name = "ov.BitwiseLeftShift"


@irdl_op_definition
class BitwiseRightShift(Binary):
    """a >> b; the sign is kept."""

    name = "ov.BitwiseRightShift"
