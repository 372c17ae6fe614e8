"""Shape ops, repetition and padding in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import shape as ov
from compiler_layer.elements import NUMPY
from compiler_layer.reference.meaning import Array, means


@means(ov.ShapeOf)
def shape_of(op: ov.ShapeOf, x: Array) -> Array:
    """Return the shape as a vector."""
    return np.array(x.shape, NUMPY[op.output_type.data])


@means(ov.Reshape)
def reshape(op: ov.Reshape, x: Array, pattern: Array) -> Array:
    """Reshape; zeros of the pattern keep the dimension."""
    return x.reshape(op.completed([int(d) for d in pattern], x.shape))


@means(ov.Transpose)
def transpose(op: ov.Transpose, x: Array, order: Array) -> Array:
    """Permute dimensions."""
    del op
    return x.transpose([int(i) for i in order] or None)


@means(ov.Unsqueeze)
def unsqueeze(op: ov.Unsqueeze, x: Array, axes: Array) -> Array:
    """Insert dimensions of 1."""
    del op
    return np.expand_dims(x, tuple(int(a) for a in axes.reshape(-1)))


@means(ov.Squeeze)
def squeeze(op: ov.Squeeze, x: Array, *axes: Array) -> Array:
    """Remove dimensions of 1."""
    del op
    if not axes:
        return np.squeeze(x)
    at = {int(a) % x.ndim for a in axes[0].reshape(-1)}
    return np.squeeze(x, tuple(a for a in at if x.shape[a] == 1))


@means(ov.Broadcast)
def broadcast(op: ov.Broadcast, x: Array, target: Array) -> Array:
    """Repeat elements."""
    shape = tuple(int(d) for d in target)
    if op.mode.data == "bidirectional":
        shape = np.broadcast_shapes(x.shape, shape)
    return np.broadcast_to(x, shape)


@means(ov.Range)
def range_(op: ov.Range, start: Array, stop: Array, step: Array) -> Array:
    """Return numbers from start to stop."""
    bounds = (x.reshape(-1)[0] for x in (start, stop, step))
    return np.arange(*bounds, dtype=NUMPY[op.output_type.data])


@means(ov.Tile)
def tile(op: ov.Tile, x: Array, repeats: Array) -> Array:
    """Repeat the tensor along each dimension."""
    del op
    return np.tile(x, [int(n) for n in repeats.reshape(-1)])


@means(ov.Pad)
def pad(op: ov.Pad, x: Array, begin: Array, end: Array, *value: Array) -> Array:
    """Pad both ends of dimensions; negative pads crop first."""
    pads = [(int(b), int(e)) for b, e in zip(*np.broadcast_arrays(begin, end), strict=True)]
    pads = pads * x.ndim if len(pads) == 1 else pads
    kept = x[
        tuple(slice(max(-b, 0), d - max(-e, 0)) for d, (b, e) in zip(x.shape, pads, strict=True))
    ]
    added = [(max(b, 0), max(e, 0)) for b, e in pads]
    match op.pad_mode.data:
        case "edge":
            return np.pad(kept, added, "edge")
        case "reflect":
            return np.pad(kept, added, "reflect")
        case "symmetric":
            return np.pad(kept, added, "symmetric")
        case _:
            filler = value[0].reshape(()) if value else 0
            return np.pad(kept, added, constant_values=filler)
