"""Gathers and concatenations in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.reference.meaning import Array, means


@means(npu.Gather)
def gather(op: npu.Gather, table: Array, indices: Array) -> Array:
    """Take rows."""
    del op
    return np.take(table, indices, 0)


@means(npu.Concat)
def concat(op: npu.Concat, *parts: Array) -> Array:
    """Join along the axis."""
    return np.concatenate(parts, int_value(op.axis))
