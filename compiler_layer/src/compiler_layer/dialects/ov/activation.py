"""Activation functions and related element-wise functions.

Source: OpenVINO operation sets; opset of each op in ``frontends.openvino_ir.rules``.
"""

from __future__ import annotations

from xdsl.dialects.builtin import Float64Type, FloatAttr, StringAttr
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def

from compiler_layer.dialects.ov.elementwise import Unary
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, shape_of, tensor


class Tanh(Unary):
    """Hyperbolic tangent."""


class Sigmoid(Unary):
    """1 / (1 + exp(-x))."""


class Swish(OvOp):
    """x * sigmoid(beta * x); beta is 1 by default (opset4)."""

    x = operand_def(Tensor)
    beta = opt_operand_def(Tensor)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the operand's type; beta is a scalar of the same element type."""
        if self.beta is not None and (
            element_of(self.beta) != element_of(self.x)
            or any(d not in (1, -1) for d in shape_of(self.beta))
        ):
            raise ValueError(f"beta is {element_of(self.beta)} {list(shape_of(self.beta))}")
        return [tensor(element_of(self.x), shape_of(self.x))]


class Relu(Unary):
    """max(x, 0)."""


class PRelu(OvOp):
    """x where x is not negative, slope · x elsewhere (opset1).

    A one-dimensional slope with the operand's number of channels holds one slope per channel; any
    other slope broadcasts.
    """

    x = operand_def(Tensor)
    slope = operand_def(Tensor)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the operand's type."""
        x, slope = shape_of(self.x), shape_of(self.slope)
        if element_of(self.x) != element_of(self.slope):
            raise ValueError(f"the operand is {element_of(self.x)}, slope {element_of(self.slope)}")
        if not self._fits(x, slope):
            raise ValueError(f"slope {list(slope)} does not fit operand {list(x)}")
        return [tensor(element_of(self.x), x)]

    def _fits(self, x: Shape, slope: Shape) -> bool:
        """Return whether a slope may be per channel or broadcast; unknown dimensions fit."""
        if len(slope) == 1 and len(x) > 1 and (x[1] == slope[0] or -1 in (x[1], *slope)):
            return True
        pairs = zip(reversed(x), reversed(slope), strict=False)
        return len(slope) <= len(x) and all(b in (1, -1, a) or a == -1 for a, b in pairs)


class Erf(Unary):
    """Error function."""


class ErfInv(Unary):
    """Inverse of Erf; Gemma 3n applies it to a constant, and the device does not support it."""


class Softplus(Unary):
    """log(1 + exp(x))."""


class HSwish(Unary):
    """x · min(max(x + 3, 0), 6) / 6."""


class Gelu(Unary):
    """x · Φ(x), with the error function or the tanh approximation (opset7)."""

    approximation_mode = prop_def(StringAttr)


class Clamp(Unary):
    """min(max(x, min), max); bounds are rounded inwards for integers."""

    min = prop_def(FloatAttr[Float64Type])
    max = prop_def(FloatAttr[Float64Type])
