"""Rules for leaky rectifiers and repeated elements, which use ops that every device supports."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.activation import PRelu
from compiler_layer.dialects.ov.constant import Constant, ints_of, values_of
from compiler_layer.dialects.ov.elementwise import Maximum, Multiply
from compiler_layer.dialects.ov.interpolate import Interpolate
from compiler_layer.dialects.ov.shape import Broadcast
from compiler_layer.dialects.ov.types import element_of, is_static, known_axes, shape_of
from compiler_layer.elements import RAW_FLOATS
from compiler_layer.rewriting.replace import insert_before, reshape_before

_EXACT = 1 << 24
"""Limit up to which f32 counts elements exactly."""


def leaky(op: PRelu) -> SSAValue | None:
    """Replace PRelu with one slope from 0 to 1: max(x, slope · x)."""
    slope = None if element_of(op.slope) in RAW_FLOATS else values_of(op.slope)
    if slope is None or slope.size != 1 or not 0 <= slope.item() <= 1:
        return None
    one = op.slope if not shape_of(op.slope) else reshape_before(op, op.slope, ())
    product = insert_before(op, Multiply.make([op.x, one]))
    return insert_before(op, Maximum.make([op.x, product]))


def repeated_elements(op: Interpolate) -> SSAValue | None:
    """Replace nearest-below upsampling by an integer factor: repeat each element."""
    modes = (op.mode.data, op.coordinate_transformation_mode.data, op.nearest_mode.data)
    axes, scales = ints_of(op.axes), values_of(op.scales)
    wanted, shape = shape_of(op.output), shape_of(op.x)
    if modes != ("nearest", "asymmetric", "floor") or axes is None or scales is None:
        return None
    if not is_static(shape) or not 0 < max(wanted) < _EXACT:
        return None
    times = [1] * len(shape)
    for axis, scale in zip(known_axes(axes, len(shape)), scales.reshape(-1).tolist(), strict=True):
        if not float(scale).is_integer() or wanted[axis] != shape[axis] * scale:
            return None
        times[axis] = int(scale)
    apart, target = list[int](), list[int]()
    for size, each in zip(shape, times, strict=True):
        apart += [size] if each == 1 else [size, 1]
        target += [size] if each == 1 else [size, each]
    place = insert_before(op, Constant.inline(np.array(target, np.int64)))
    one = reshape_before(op, op.x, tuple(apart))
    many = insert_before(op, Broadcast.make([one, place], mode=StringAttr("numpy")))
    return reshape_before(op, many, wanted)
