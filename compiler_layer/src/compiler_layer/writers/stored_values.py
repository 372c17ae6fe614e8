"""Sequential reading of constants' values, a block at a time.

``Constant.load`` maps the file instead, which suits repeated access; but mapped pages count as the
process's memory until the map is released.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.constant_value import Inline
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import Array, convert_values, from_bytes, stored_bytes
from compiler_layer.errors import BadModel
from compiler_layer.files import FileView
from driver_layer.support.files import open_regular

BLOCK_ELEMENTS = 1 << 20
"""Default elements of a block; even, so that 4-bit elements fill its bytes."""


def read_bytes(view: FileView, block_bytes: int) -> Iterator[bytes]:
    """Yield the bytes of a view in blocks; the last may be shorter.

    Raises:
        BadModel: the file cannot be read, or ends before the view does.
    """
    try:
        with open_regular(view.path) as file:
            file.seek(view.offset)
            for start in range(0, view.size, block_bytes):
                wanted = min(block_bytes, view.size - start)
                data = file.read(wanted)
                if len(data) < wanted:
                    raise BadModel(view.path, f"ends before the end of a constant at {view.offset}")
                yield data
    except OSError as error:
        raise BadModel(view.path, error.strerror or str(error)) from None


def read_blocks(
    constant: Constant, element: str, block_elements: int = BLOCK_ELEMENTS
) -> Iterator[Array]:
    """Yield a constant's values, flat and converted to an element type, in blocks.

    Args:
        constant: the constant to read.
        element: the element type of the result.
        block_elements: elements per block; even if the constant's elements have 4 bits.

    Raises:
        BadModel: the file cannot be read, or ends before the constant does.
    """
    own = element_of(constant.output)
    view = constant.held
    if isinstance(view, Inline):
        flat = constant.load().reshape(-1)
        for start in range(0, len(flat), block_elements):
            yield convert_values(flat[start : start + block_elements], own, element)
        return
    left = math.prod(shape_of(constant.output))
    for data in read_bytes(view, stored_bytes(view.element, block_elements)):
        count = min(left, block_elements)
        left -= count
        values = convert_values(from_bytes(data, view.element, count), view.element, own)
        yield convert_values(values, own, element)
