"""Lowering of depthwise convolutions to sums of element-wise multiplications."""

from __future__ import annotations

import itertools
import math

from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.convolution import SPATIAL, GroupConvolution
from compiler_layer.dialects.ov.elementwise import Add, Multiply
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.rewriting.graph_pass import OpPass
from compiler_layer.rewriting.replace import insert_before, reshape_before, slice_before, take_over
from compiler_layer.rewriting.sliding import padded, seen

MOST_PLACES = 64
"""Maximum number of filter elements; each becomes a multiplication."""


def group_refusal(op: GroupConvolution) -> str | None:
    """Return why a group convolution is not supported, or None."""
    if not op.is_depthwise:
        return f"groups of several channels: filters of {list(shape_of(op.filters))}"
    places = math.prod(shape_of(op.filters)[SPATIAL + 1 :])
    return None if places <= MOST_PLACES else f"filters of {places} places"


def _lower(op: GroupConvolution) -> None:
    channels, _, _, *kernel = shape_of(op.filters)
    places = shape_of(op.output)[SPATIAL:]
    x = padded(op)
    filters = reshape_before(op, op.filters, (1, channels, math.prod(kernel)))
    total: SSAValue | None = None
    for number, offset in enumerate(itertools.product(*map(range, kernel))):
        one = slice_before(op, filters, 2, number, number + 1)  # of each filter
        factor = reshape_before(op, one, (1, channels, *[1] * len(places)))
        term = insert_before(op, Multiply.make([seen(op, x, offset, places), factor]))
        total = term if total is None else insert_before(op, Add.make([total, term]))
    assert total is not None  # a filter has elements
    take_over(op, total)


class LowerGroupConvolution(OpPass):
    """Lower depthwise convolutions to sums of element-wise multiplications.

    Before:  %y = ov.GroupConvolution(%x : 1x2x6, %w : 2x1x1x3) {pads = 0, 0}
    After:   %y = ov.Add(ov.Add(%x[0:4] * %w[0], %x[1:5] * %w[1]), %x[2:6] * %w[2])

    Channels are not summed, so a matmul would multiply mostly zeros. Filters are expected to be
    short, as in state-space models and LFM-2: 3 or 4 elements.
    """

    name = "lower-group-convolution"
    rewrites = ((GroupConvolution, _lower),)
