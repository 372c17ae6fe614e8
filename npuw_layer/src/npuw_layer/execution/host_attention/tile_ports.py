"""Inputs and outputs of the programs of an attention in tiles; nothing here loads graphs."""

from __future__ import annotations

from collections.abc import Sequence

from npuw_layer.backends.protocols import TensorInfo
from npuw_layer.execution.host_attention.shapes import SCALE_ELEMENT, AttentionShape

QUERY, KEYS, VALUES, MASK = "q", "k", "v", "mask"
KEYS_SCALES, VALUES_SCALES = "k_scales", "v_scales"

STORED = (KEYS, KEYS_SCALES, VALUES, VALUES_SCALES)
"""What a tile reads of a cache; scales only if rows have 8 bits."""

CARRIED = ("weights_in", "total_in", "highest_in")
"""What comes from the tile before, all f32: by row, [heads, group, tokens, 1], the sum of weights;
the weighted sum of values [heads, group, tokens, width]; and by row the largest score."""

RESULT = ("weights", "total", "highest")
"""The same for the next tile; in this order, what is made of scores becomes one kernel."""

OUTPUT = "output"
"""What the last program gives."""

LOWEST = -1e30
"""What masks add to scores of positions that are not attended to: no score counts beside it, and no
sum with a score leaves f32."""

NOTHING = -2e30
"""The largest score where none was found yet; e to the power of its distance to any is 0."""


def tile_inputs(shape: AttentionShape, rows: int) -> Sequence[TensorInfo]:
    """What the program of stored rows takes: K and V are [1, rows, heads, width].

    Args:
        shape: of the attention.
        rows: of a tile.
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
    """What the program of stored rows gives: what is carried on."""
    return _carried(shape, RESULT)


def last_inputs(shape: AttentionShape) -> Sequence[TensorInfo]:
    """What the program of new rows takes: K and V are [1, heads, tokens, width]."""
    new = [
        TensorInfo(name, shape.element, (1, shape.heads, shape.tokens, width))
        for name, width in ((KEYS, shape.width), (VALUES, shape.value_width))
    ]
    return _around(shape, shape.tokens, new)


def last_outputs(shape: AttentionShape) -> Sequence[TensorInfo]:
    """What the program of new rows gives: the attention's result."""
    dims = (1, shape.query_heads, shape.tokens, shape.value_width)
    return [TensorInfo(OUTPUT, shape.element, dims)]


def _around(
    shape: AttentionShape, rows: int, keys_and_values: Sequence[TensorInfo]
) -> Sequence[TensorInfo]:
    """The inputs of a program of some rows."""
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
