"""Ops on variables, the state of a model."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def

from compiler_layer.dialects.ov.op import OvOp, SameType
from compiler_layer.dialects.ov.types import Tensor, tensor_type

KEPT = "npuc.keeps_type"
"""Attribute of a ReadValue or Assign whose variable keeps its element type."""


class ReadValue(OvOp):
    """Value of a variable from the previous inference; after a reset, ``init`` or zeros (opset6).

    The type is the variable's, which may be wider than that of ``init``: a cache starts with no
    rows and grows.
    """

    init = opt_operand_def(Tensor)
    variable_id = prop_def(StringAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Return the type that the op was created with."""
        return [tensor_type(self.output)]


class Assign(SameType):
    """Assignment to a variable for the next inference (opset6); the result is the value itself."""

    value = operand_def(Tensor)
    variable_id = prop_def(StringAttr)
    output = result_def(Tensor)


def keep_type(op: ReadValue | Assign) -> None:
    """Keep a variable in f32 even if activations are narrowed; its uses convert it."""
    op.attributes[KEPT] = UnitAttr()
