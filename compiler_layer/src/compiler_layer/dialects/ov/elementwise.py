"""Element-wise arithmetic: unary, binary with numpy broadcasting, selection and conversion.

Source: OpenVINO operation sets; opset of each op in ``frontends.openvino_ir.rules``.
"""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import StringAttr
from xdsl.irdl import operand_def, prop_def, result_def

from compiler_layer.dialects.ov.op import OvOp, SameType
from compiler_layer.dialects.ov.types import Tensor, broadcast, element_of, shape_of, tensor


class Unary(SameType, ABC):
    """y[i] = f(x[i]), of the same type."""

    x = operand_def(Tensor)
    output = result_def(Tensor)


class Binary(OvOp, ABC):
    """y = f(a, b) with numpy broadcasting, of the operands' common type."""

    a = operand_def(Tensor)
    b = operand_def(Tensor)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the common element type and the broadcast shape."""
        if element_of(self.a) != element_of(self.b):
            raise ValueError(f"operand types {element_of(self.a)} and {element_of(self.b)} differ")
        return [tensor(element_of(self.a), broadcast(shape_of(self.a), shape_of(self.b)))]


class Sqrt(Unary):
    """Square root."""


class Exp(Unary):
    """e to the power of x."""


class Sin(Unary):
    """Sine."""


class Cos(Unary):
    """Cosine."""


class Atan(Unary):
    """Arctangent."""


class Negative(Unary):
    """-x."""


class Abs(Unary):
    """|x|."""


class Floor(Unary):
    """Largest integer not above x."""


class Add(Binary):
    """a + b."""


class Subtract(Binary):
    """a - b."""


class Multiply(Binary):
    """a * b."""


class Divide(Binary):
    """a / b; integer quotients are rounded down, as the exporter's ``m_pythondiv`` specifies."""


class Power(Binary):
    """a to the power of b."""


class Minimum(Binary):
    """Smaller of a and b."""


class Maximum(Binary):
    """Larger of a and b."""


class Select(OvOp):
    """``then`` where ``condition`` is true, else ``otherwise``, with numpy broadcasting."""

    condition = operand_def(Tensor)
    then = operand_def(Tensor)
    otherwise = operand_def(Tensor)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the branches' element type and the broadcast shape of all three."""
        if element_of(self.condition) != "boolean":
            raise ValueError(f"the condition is {element_of(self.condition)}, not boolean")
        if element_of(self.then) != element_of(self.otherwise):
            raise ValueError(
                f"branch types {element_of(self.then)} and {element_of(self.otherwise)} differ"
            )
        shapes = (shape_of(self.condition), shape_of(self.then), shape_of(self.otherwise))
        return [tensor(element_of(self.then), broadcast(*shapes))]


class Convert(OvOp):
    """Conversion to another element type; floats are truncated towards zero for integers."""

    x = operand_def(Tensor)
    destination_type = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the operand's shape with the destination type."""
        return [tensor(self.destination_type.data, shape_of(self.x))]


class Log(Unary):
    """Natural logarithm."""


class Ceiling(Unary):
    """Smallest integer not below x."""


class Sign(Unary):
    """Sign of x: -1, 0 or 1."""


class Round(Unary):
    """Nearest integer; a tie rounds to even, or away from zero (opset5)."""

    mode = prop_def(StringAttr)


class SquaredDifference(Binary):
    """(a - b)²."""


class Mod(Binary):
    """a - b · trunc(a / b); the result has the sign of a."""


class FloorMod(Binary):
    """a - b · floor(a / b); the result has the sign of b."""
