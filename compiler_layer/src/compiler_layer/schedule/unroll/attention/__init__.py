"""Attention: rows of the query heads that share a key head, from scores to context in CMX.

operands     tensors, units of work, and loads that several tiles share
programs     SHAVE programs between the two matmuls
single_pass  all scores of a unit together
online       block of keys by block of keys, with a running maximum and a running sum

Keys, values and masks are streamed in blocks; parts of keys and values are joined on the way. So
only queries, keys, values, masks and the context cross DDR. Positions that the mask excludes for
all rows of a unit and all inputs are neither loaded nor computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.schedule.layout import HardwareOp
from compiler_layer.schedule.tasks import Step
from compiler_layer.schedule.unroll.attention.online import online_steps
from compiler_layer.schedule.unroll.attention.operands import Group, Unit, read_operands
from compiler_layer.schedule.unroll.attention.single_pass import single_pass_steps
from compiler_layer.schedule.unroll.blocks import ranges


def unroll_attention(index: int, op: HardwareOp, attention: npu.Attention) -> Iterator[Step]:
    """Compute each block of query rows of each key head, one unit per tile at a time."""
    assert attention.tile is not None and attention.tiles is not None  # noqa: PT018  # tiled
    rows, keys, positions = (int(d) for d in attention.tile.get_values())
    x = read_operands(op, attention)
    sequences, heads = range(x.q.shape[0]), range(x.key_heads)
    units = list(itertools.product(sequences, heads, ranges(x.q.shape[2], rows)))
    tiles = int_value(attention.tiles)
    blocks = ranges(x.length, keys)
    for first in range(0, len(units), tiles):
        taken = enumerate(units[first : first + tiles])
        group = Group(
            x,
            [
                Unit(sequence, head, block, tile, x.reach_of(block))
                for tile, (sequence, head, block) in taken
            ],
        )
        reached = [block for block in blocks if block[0] < group.positions]
        if positions < x.length:
            yield from online_steps(index, group, reached)
        else:
            yield from single_pass_steps(index, group, reached)
