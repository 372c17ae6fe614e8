"""Visible positions in a mask, and the masks of tiles."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from npuw_layer.backends.protocols import Array
from npuw_layer.execution.host_attention.tile_ports import LOWEST

Numbers = npt.NDArray[np.float32]

ATTENDED = -3e4
"""Threshold of visibility: a position with a larger mask value is visible. Exporters mask with the
lowest f16 or f32 (as in ``compiler_layer.passes.lower_attention.mask_reach``)."""


def additive(mask: Array, element: str) -> Numbers:
    """Return a mask, or a part of one, as finite numbers to add.

    Args:
        mask: booleans, true for visible positions, or numbers; bf16 as raw bits.
        element: its element type by OpenVINO's name.
    """
    if element == "boolean":
        return np.where(mask, np.float32(0), np.float32(LOWEST))
    if element == "bf16":
        mask = (mask.astype(np.uint32) << 16).view(np.float32)
    return np.maximum(mask.astype(np.float32, copy=False), np.float32(LOWEST))


def attended(mask: Numbers) -> bool:
    """Return whether any row attends to any of the positions of an additive mask."""
    return bool(mask.max(initial=-np.inf) > ATTENDED)


def live_positions(mask: Numbers) -> int:
    """Return the end of the visible positions; mask [..., positions] is additive."""
    anybody = np.flatnonzero(mask.reshape(-1, mask.shape[-1]).max(0) > ATTENDED)
    return int(anybody[-1]) + 1 if len(anybody) else 0
