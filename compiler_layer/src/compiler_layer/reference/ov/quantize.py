"""Ops of quantised models in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import quantize as ov
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.dialects.ov.types import element_of
from compiler_layer.elements import convert_values
from compiler_layer.reference.meaning import Array, means, wide
from driver_layer.abi.float8 import FORMATS


@means(ov.FakeQuantize)
def fake_quantize(op: ov.FakeQuantize, x: Array, *bounds: Array) -> Array:
    """Round to quantisation steps, clamped at the bounds."""
    low, high, out_low, out_high = (wide(bound) for bound in bounds)
    steps = int_value(op.levels) - 1
    v = wide(x)
    inside = np.round((v - low) / (high - low) * steps) / steps * (out_high - out_low) + out_low
    clamped = np.where(v <= np.minimum(low, high), out_low, inside)
    return np.where(v > np.maximum(low, high), out_high, clamped).astype(x.dtype)


@means(ov.FakeConvert)
def fake_convert(op: ov.FakeConvert, x: Array, scale: Array, *shift: Array) -> Array:
    """Scale, clamp, round to f8, and scale back; in f32."""
    limit = np.float32(FORMATS[op.destination_type.data].limit)
    scales = convert_values(scale, element_of(op.scale), "f32")
    values = x.astype(np.float32) * scales
    shifts = convert_values(shift[0], element_of(op.shift), "f32") if op.shift is not None else None
    if shifts is not None:
        values = values - shifts
    stored = convert_values(np.clip(values, -limit, limit), "f32", op.destination_type.data)
    values = convert_values(stored, op.destination_type.data, "f32")
    if shifts is not None:
        values = values + shifts
    return (values * (np.float32(1) / scales)).astype(x.dtype)


@means(ov.Dequantize)
def dequantize(op: ov.Dequantize, stored: Array, scale: Array, *zero: Array) -> Array:
    """Subtract the zero point and scale, in f32."""
    values = convert_values(stored, element_of(op.stored), "f32")
    if op.zero is not None:
        values = values - convert_values(zero[0], element_of(op.zero), "f32")
    values = values * convert_values(scale, element_of(op.scale), "f32")
    return convert_values(values, "f32", op.destination_type.data)
