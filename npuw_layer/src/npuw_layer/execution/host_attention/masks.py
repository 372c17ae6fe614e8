"""Who is attended to, as a mask says, and what of it a tile needs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from npuw_layer.backends.protocols import Array
from npuw_layer.execution.host_attention.tile_ports import LOWEST

Numbers = npt.NDArray[np.float32]

ATTENDED = -3e4
"""Where a mask adds more than this, a position is attended to; exporters forbid by the lowest f16
or f32 (as in ``compiler_layer.passes.lower_attention.mask_reach``)."""


def additive(mask: Array, element: str) -> Numbers:
    """Give a mask, or a part of one, as finite numbers to add.

    Args:
        mask: booleans, true where a position may be attended to, or numbers; bf16 as raw bits.
        element: its element type by OpenVINO's name.
    """
    if element == "boolean":
        return np.where(mask, np.float32(0), np.float32(LOWEST))
    if element == "bf16":
        mask = (mask.astype(np.uint32) << 16).view(np.float32)
    return np.maximum(mask.astype(np.float32, copy=False), np.float32(LOWEST))


def attended(mask: Numbers) -> bool:
    """Whether anybody attends to any of the positions of an additive mask."""
    return bool(mask.max(initial=-np.inf) > ATTENDED)


def live_positions(mask: Numbers) -> int:
    """Behind the last position that anybody attends to; mask [..., positions] is additive."""
    anybody = np.flatnonzero(mask.reshape(-1, mask.shape[-1]).max(0) > ATTENDED)
    return int(anybody[-1]) + 1 if len(anybody) else 0
