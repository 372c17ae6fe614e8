"""Parts of weights that are stacked over experts."""

from __future__ import annotations

import math
from dataclasses import replace

from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.elements import FOUR_BIT, stored_bytes
from compiler_layer.files import FileView


def is_cut(constant: Constant | None, rank: int) -> bool:
    """Return whether each expert's part of a constant begins at a byte boundary."""
    if constant is None:
        return False
    shape, element = shape_of(constant.output), element_of(constant.output)
    if isinstance(constant.held, FileView):
        element = constant.held.element
    in_half = element in FOUR_BIT and math.prod(shape[1:]) % 2
    return len(shape) < rank or shape[0] == 1 or not in_half


def expert_part(constant: Constant, index: int, rank: int) -> Constant:
    """Return one expert's part of a constant, without the first dimension; a view stays a view.

    Args:
        constant: with a first dimension of experts or of 1, or of a rank less than ``rank``.
        index: the expert.
        rank: the rank of the weights that the constant belongs to.
    """
    shape, element = shape_of(constant.output), element_of(constant.output)
    if len(shape) < rank or shape[0] == 1:
        return Constant.inline(constant.load().reshape(shape[len(shape) == rank :]), element)
    view = constant.held
    if not isinstance(view, FileView):
        return Constant.inline(constant.load()[index], element)
    size = stored_bytes(view.element, math.prod(shape[1:]))
    cut = replace(view, offset=view.offset + index * size, size=size)
    return Constant.of_file(cut, element, shape[1:])
