"""Activation functions, and the functions they are made of.

Source: OpenVINO operation sets; opset of each op in ``frontends.openvino_ir.rules``.
"""

from __future__ import annotations

from xdsl.dialects.builtin import Float64Type, FloatAttr, StringAttr
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def

from compiler_layer.dialects.ov.elementwise import Unary
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Shape, Tensor, element_of, shape_of, tensor


@irdl_op_definition
class Tanh(Unary):
    """Hyperbolic tangent."""

    name = "ov.Tanh"


@irdl_op_definition
class Sigmoid(Unary):
    """1 / (1 + exp(-x))."""

    name = "ov.Sigmoid"


@irdl_op_definition
class Swish(OvOp):
    """x * sigmoid(beta * x); beta is 1 if not given (opset4)."""

    name = "ov.Swish"
    x = operand_def(Tensor)
    beta = opt_operand_def(Tensor)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """The operand's type; beta is one number of it."""
        if self.beta is not None and (
            element_of(self.beta) != element_of(self.x)
            or any(d not in (1, -1) for d in shape_of(self.beta))
        ):
            raise ValueError(f"a beta of {element_of(self.beta)} {list(shape_of(self.beta))}")
        return [tensor(element_of(self.x), shape_of(self.x))]


@irdl_op_definition
class Relu(Unary):
    """max(x, 0)."""

    name = "ov.Relu"


@irdl_op_definition
class PRelu(OvOp):
    """x where it is not negative, slope · x elsewhere (opset1).

    A slope of one dimension, as long as the operand has channels, is one for each channel; any
    other broadcasts.
    """

    name = "ov.PRelu"
    x = operand_def(Tensor)
    slope = operand_def(Tensor)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """The operand's type."""
        x, slope = shape_of(self.x), shape_of(self.slope)
        if element_of(self.x) != element_of(self.slope):
            raise ValueError(f"{element_of(self.x)} with a slope of {element_of(self.slope)}")
        if not self._fits(x, slope):
            raise ValueError(f"a slope of {list(slope)} for {list(x)}")
        return [tensor(element_of(self.x), x)]

    def _fits(self, x: Shape, slope: Shape) -> bool:
        """Whether a slope is one for each channel or broadcasts, as far as is known."""
        if len(slope) == 1 and len(x) > 1 and (x[1] == slope[0] or -1 in (x[1], *slope)):
            return True
        pairs = zip(reversed(x), reversed(slope), strict=False)
        return len(slope) <= len(x) and all(b in (1, -1, a) or a == -1 for a, b in pairs)


@irdl_op_definition
class Erf(Unary):
    """Error function."""

    name = "ov.Erf"


@irdl_op_definition
class ErfInv(Unary):
    """What Erf gives the value of; Gemma 3n has it of a constant, and the device knows no other."""

    name = "ov.ErfInv"


@irdl_op_definition
class Softplus(Unary):
    """log(1 + exp(x))."""

    name = "ov.Softplus"


@irdl_op_definition
class HSwish(Unary):
    """x · min(max(x + 3, 0), 6) / 6."""

    name = "ov.HSwish"


@irdl_op_definition
class Gelu(Unary):
    """x · Φ(x), by the error function or by the tanh approximation (opset7)."""

    name = "ov.Gelu"
    approximation_mode = prop_def(StringAttr)


@irdl_op_definition
class Clamp(Unary):
    """min(max(x, min), max); bounds are rounded inwards for integers."""

    name = "ov.Clamp"
    min = prop_def(FloatAttr[Float64Type])
    max = prop_def(FloatAttr[Float64Type])
