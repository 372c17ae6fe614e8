"""Inputs and outputs of the programs of a tiled attention; this module loads no graphs."""

from __future__ import annotations

from collections.abc import Sequence

from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.execution.host_attention.shapes import SCALE_ELEMENT, AttentionShape

QUERY, KEYS, VALUES, MASK = "q", "k", "v", "mask"
KEYS_SCALES, VALUES_SCALES = "k_scales", "v_scales"

STORED = (KEYS, KEYS_SCALES, VALUES, VALUES_SCALES)
"""Inputs of a tile from the cache; scales only if rows have 8 bits."""

CARRIED = ("weights_in", "total_in", "highest_in")
"""Values carried from the previous tile, all f32: by row, [heads, group, tokens, 1], the sum of
weights; the weighted sum of values [heads, group, tokens, width]; and by row the largest score."""

RESULT = ("weights", "total", "highest")
"""Values carried to the next tile; in this order, the ops on scores fuse into one kernel."""

OUTPUT = "output"
"""Output of the last program."""

LOWEST = -1e30
"""Mask value of invisible positions: against it every score is negligible, and its sum with a score
stays in f32."""

NOTHING = -2e30
"""Largest score before any score: e to the power of its distance to any score is 0."""


def tile_inputs(shape: AttentionShape, rows: int) -> Sequence[TensorInfo]:
    """Return the inputs of a tile's program: K and V are [1, rows, heads, width].

    Args:
        shape: sizes of the attention.
        rows: rows of a tile.
    """
    stored: list[TensorInfo] = []
    for name, scales, width in (
        (KEYS, KEYS_SCALES, shape.width),
        (VALUES, VALUES_SCALES, shape.value_width),
    ):
        stored.append(TensorInfo(name, shape.stored_element, (1, rows, shape.heads, width)))
        if shape.scaled:
            stored.append(TensorInfo(scales, SCALE_ELEMENT, (1, rows, shape.heads, 1)))
    return _around(shape, rows, stored)


def tile_outputs(shape: AttentionShape) -> Sequence[TensorInfo]:
    """Return the outputs of a tile's program: the carried values."""
    return _carried(shape, RESULT)


def last_inputs(shape: AttentionShape) -> Sequence[TensorInfo]:
    """Return the inputs of the last program: K and V are [1, heads, tokens, width]."""
    new = [
        TensorInfo(name, shape.element, (1, shape.heads, shape.tokens, width))
        for name, width in ((KEYS, shape.width), (VALUES, shape.value_width))
    ]
    return _around(shape, shape.tokens, new)


def last_outputs(shape: AttentionShape) -> Sequence[TensorInfo]:
    """Return the output of the last program: the attention's result."""
    dims = (1, shape.query_heads, shape.tokens, shape.value_width)
    return [TensorInfo(OUTPUT, shape.element, dims)]


def _around(
    shape: AttentionShape, rows: int, keys_and_values: Sequence[TensorInfo]
) -> Sequence[TensorInfo]:
    """Return all inputs of a program, given its keys and values."""
    query = (1, shape.query_heads, shape.tokens, shape.width)
    return [
        TensorInfo(QUERY, shape.element, query),
        *keys_and_values,
        TensorInfo(MASK, "f32", (*shape.mask_dims, rows)),
        *_carried(shape, CARRIED),
    ]


def _carried(shape: AttentionShape, names: Sequence[str]) -> Sequence[TensorInfo]:
    by_row = (shape.heads, shape.group, shape.tokens)
    dims = ((*by_row, last) for last in (1, shape.value_width, 1))
    return [TensorInfo(name, "f32", own) for name, own in zip(names, dims, strict=True)]
