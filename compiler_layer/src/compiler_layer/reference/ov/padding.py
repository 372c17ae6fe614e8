"""Repetition and padding in numpy."""

from __future__ import annotations

import numpy as np

from compiler_layer.dialects.ov import padding as ov
from compiler_layer.reference.meaning import Array, means


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
