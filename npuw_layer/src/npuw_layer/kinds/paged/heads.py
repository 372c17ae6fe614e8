"""Number and width of the heads in caches, which files leave open.

The transformation leaves both to the runtime; but it makes k and v from tensors [..., heads,
channels], which it flattens.
"""

from __future__ import annotations

from xdsl.ir import OpResult, SSAValue

from compiler_layer.dialects.ov.shape import Reshape
from compiler_layer.dialects.ov.types import Shape, shape_of
from npuw_layer.errors import ModelError
from npuw_layer.kinds.paged.names import OPTION

BLOCK_ROWS = 32
"""Default rows of a block, as in OpenVINO's CPU plugin."""


def cache_shape(name: str, declared: Shape, rows: SSAValue) -> Shape:
    """Return the shape of one block of a cache.

    Args:
        name: name of the cache.
        declared: shape in the file, [blocks, heads, rows of a block, channels].
        rows: k or v, [tokens, heads · channels], of known shape.

    Returns:
        [1, heads, rows of a block, channels].

    Raises:
        ModelError: the number of heads is unknown.
    """
    _, heads, block_rows, channels = declared
    source = rows.op if isinstance(rows, OpResult) else None
    flattened = shape_of(source.operands[0]) if isinstance(source, Reshape) else ()
    if len(flattened) > 2:
        heads = flattened[-2] if heads < 0 else heads
        channels = flattened[-1] if channels < 0 else channels
    if heads <= 0 or heads * channels != shape_of(rows)[1] or not block_rows:
        raise ModelError(
            f"{OPTION} = YES: cache {name!r} is {list(declared)} for {shape_of(rows)[1]} channels, "
            f"so its number of heads is unknown; reshape it to [?, heads, {BLOCK_ROWS}, channels] "
            "before saving the model"
        )
    return 1, heads, BLOCK_ROWS if block_rows < 0 else block_rows, channels
