"""Attention with an online softmax (FlashSDPA): CMX holds the scores of one block of keys.

Each block of keys adds its context to the running context, which is first rescaled to the new
running maximum. At the end the context is divided by the sum of weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compiler_layer.schedule.tasks import Region, Step, Transfer, Window, Work
from compiler_layer.schedule.unroll.attention import programs
from compiler_layer.schedule.unroll.attention.operands import Group, Operands, Range, Rows, Unit
from compiler_layer.schedule.unroll.kernel import invocation
from compiler_layer.schedule.unroll.matmul import matrix_product
from driver_layer.abi.shave import Access


def online_steps(index: int, group: Group, key_blocks: Sequence[Range]) -> Iterator[Step]:
    """Yield the steps of a group, one for each block of keys."""
    widest = max(end - begin for begin, end in key_blocks)
    states = [_State(group.operands, unit, widest) for unit in group.units]
    queries: list[Region] = []
    for number, block in enumerate(key_blocks):
        step = Step(index)
        if number == 0:
            queries = group.load_queries(step)
        keys, values = group.load_keys(step, block), group.load_values(step, block)
        masks = group.load_masks(step, block)
        for state, q, k, v, mask in zip(states, queries, keys, values, masks, strict=True):
            if k is not None and v is not None:
                step.work += state.add_block(q, (k, v), mask, first=number == 0)
            if block == key_blocks[-1]:
                state.add_store(step)
        yield step


class _State:
    """State of a unit in CMX from block to block."""

    def __init__(self, x: Operands, unit: Unit, keys: int) -> None:
        self._x = x
        self._unit = unit
        rows, depth = (x.group, unit.count), x.out.shape[3]
        self._scores = unit.region("scores", "f32", (*rows, keys))
        narrow = x.q.element != "f32"
        self._weights = (
            unit.region("weights", x.q.element, (*rows, keys)) if narrow else self._scores
        )
        self._peak = unit.region("peak", "f32", (*rows, 1))
        self._total = unit.region("total", "f32", (*rows, 1))
        self._sum = unit.region("sum", "f32", (*rows, depth))
        out = x.out.element
        self._out = unit.region("context", out, (*rows, depth)) if out != "f32" else self._sum

    def add_block(
        self, q: Region, block: tuple[Rows, Rows], mask: Region | None, first: bool
    ) -> list[Work]:
        """Process a block of keys and values."""
        keys, values = block
        tile, count = self._unit.tile, keys.region.shape[0]
        scores, weights = self._scores.rows(2, 0, count), self._weights.rows(2, 0, count)
        return [
            matrix_product(tile, _stacked(q), keys.as_keys(), _stacked(scores), self._x.scale),
            self._update(scores, mask, weights, first),
            matrix_product(
                tile,
                _stacked(weights),
                values.as_values(),
                _stacked(self._sum),
                accumulate=not first,
            ),
        ]

    def _update(self, scores: Region, mask: Region | None, weights: Region, first: bool) -> Work:
        """Compute weights from scores in place: rows are read completely before being written."""
        masks = [] if mask is None else [mask]
        state = [self._peak, self._total, self._sum]
        read = [scores, *masks, *([] if first else state)]
        written = [weights, *(state[:2] if first else state)]
        windows = [
            *(Window(region, Access.READ) for region in read),
            *(Window(region, Access.WRITE) for region in written),
        ]
        program = programs.online(mask is not None, first)
        return invocation(self._unit.tile, program, scores.shape, windows)

    def add_store(self, step: Step) -> None:
        """Divide the context by the sum of weights, and store it to DDR."""
        windows = [
            Window(self._sum, Access.READ),
            Window(self._total, Access.READ),
            Window(self._out, Access.WRITE),
        ]
        tile = self._unit.tile
        step.work.append(invocation(tile, programs.finish(), self._sum.shape, windows))
        target = self._x.heads(self._x.out, self._unit)
        step.stores.append(Transfer(self._out.reshaped(target.shape), target, (tile,)))


def _stacked(region: Region) -> Region:
    """Return [heads, rows, columns] as one matrix [heads · rows, columns]."""
    heads, rows, columns = region.shape
    shape, strides = (heads * rows, columns), region.strides[1:]
    return Region(region.buffer, region.element, region.offset, shape, strides)
