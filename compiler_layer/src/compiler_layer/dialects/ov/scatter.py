"""Replacement of slices by index."""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, StringAttr
from xdsl.irdl import operand_def, prop_def, result_def

from compiler_layer.dialects.ov.constant import int_of
from compiler_layer.dialects.ov.op import OvOp, SameType
from compiler_layer.dialects.ov.types import Tensor, element_of, known_axis, shape_of, tensor


class ScatterUpdate(SameType):
    """``data`` with the slices at ``indices`` along ``axis`` replaced by ``updates`` (opset3)."""

    data = operand_def(Tensor)
    indices = operand_def(Tensor)
    updates = operand_def(Tensor)
    axis = operand_def(Tensor)
    output = result_def(Tensor)


class ScatterElementsUpdate(OvOp):
    """``data`` with one element replaced for each element of ``indices`` (opset12).

    ``reduction`` other than "none" combines the updates of one element; ``use_init_val`` states
    whether the element's own value takes part.
    """

    data = operand_def(Tensor)
    indices = operand_def(Tensor)
    updates = operand_def(Tensor)
    axis = operand_def(Tensor)
    reduction = prop_def(StringAttr)
    use_init_val = prop_def(BoolAttr)
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the type of the data."""
        indices, updates = shape_of(self.indices), shape_of(self.updates)
        pairs = zip(indices, updates, strict=False)
        if len(indices) != len(updates) or any(a != b and -1 not in (a, b) for a, b in pairs):
            raise ValueError("indices and updates differ in shape")
        axis = int_of(self.axis)
        if axis is not None:
            known_axis(axis, len(shape_of(self.data)))
        return [tensor(element_of(self.data), shape_of(self.data))]


class ScatterNDUpdate(SameType):
    """``data`` with the slices at index tuples replaced by ``updates`` (opset15).

    ``reduction`` other than "none" combines the updates with the existing values.
    """

    data = operand_def(Tensor)
    indices = operand_def(Tensor)
    updates = operand_def(Tensor)
    reduction = prop_def(StringAttr)
    output = result_def(Tensor)
