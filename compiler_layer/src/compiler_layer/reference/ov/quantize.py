"""Quantised models' ops in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import quantize as ov
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.reference.meaning import Array, means, wide


@means(ov.FakeQuantize)
def fake_quantize(op: ov.FakeQuantize, x: Array, *bounds: Array) -> Array:
    """Round to a step, clamped at the bounds."""
    low, high, out_low, out_high = (wide(bound) for bound in bounds)
    steps = int_value(op.levels) - 1
    v = wide(x)
    inside = np.round((v - low) / (high - low) * steps) / steps * (out_high - out_low) + out_low
    clamped = np.where(v <= np.minimum(low, high), out_low, inside)
    return np.where(v > np.maximum(low, high), out_high, clamped).astype(x.dtype)
