"""Resampling of some of a tensor's axes."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i64
from xdsl.irdl import operand_def, prop_def, result_def

from compiler_layer.dialects.ov.constant import ints_of, values_of
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.types import Tensor, element_of, known_axes, shape_of, tensor

_EPSILON = np.float32(1e-6)
"""Addend of scales before the multiplication, as in OpenVINO: 3 elements by 1/3 result in 1."""


class Interpolate(OvOp):
    """Resampling of some axes by ``scales`` (opset11).

    ``mode`` is "nearest" or "linear"; ``coordinate_transformation_mode`` maps an element of the
    result to a place in the operand, ``nearest_mode`` selects one of two neighbours.
    """

    x = operand_def(Tensor)
    scales = operand_def(Tensor)
    axes = operand_def(Tensor)
    mode = prop_def(StringAttr)
    shape_calculation_mode = prop_def(StringAttr)
    coordinate_transformation_mode = prop_def(StringAttr)
    nearest_mode = prop_def(StringAttr)
    antialias = prop_def(StringAttr)
    pads_begin = prop_def(DenseArrayBase.constr(i64))
    pads_end = prop_def(DenseArrayBase.constr(i64))
    output = result_def(Tensor)

    def infer(self) -> list[Tensor]:
        """Infer the operand's dimensions times scales, rounded down."""
        if any((*self.pads_begin.get_values(), *self.pads_end.get_values())):
            raise ValueError("padding before resampling is not supported")
        shape = list(shape_of(self.x))
        axes = ints_of(self.axes)
        if axes is None:
            return [tensor(element_of(self.x), (-1,) * len(shape))]
        scales = values_of(self.scales)
        if scales is not None and (scales.size != len(axes) or not (scales > 0).all()):
            raise ValueError(f"{scales.tolist()} are not positive scales for {len(axes)} axes")
        for number, axis in enumerate(known_axes(axes, len(shape))):
            if scales is None or shape[axis] < 0:
                shape[axis] = -1
            else:
                shape[axis] = scaled(shape[axis], scales.reshape(-1)[number])
        return [tensor(element_of(self.x), tuple(shape))]


def scaled(size: int, scale: float) -> int:
    """Return the length of a resampled axis, with OpenVINO's rounding."""
    return int(np.floor(np.float32(size) * (np.float32(scale) + _EPSILON)))
