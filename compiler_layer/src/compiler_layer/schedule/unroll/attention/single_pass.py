"""Attention with all scores of a unit in CMX: matmuls, one softmax, matmuls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compiler_layer.schedule.tasks import Region, Step, Transfer, Window, Work
from compiler_layer.schedule.unroll.attention import programs
from compiler_layer.schedule.unroll.attention.operands import Group, Operands, Range, Rows, Unit
from compiler_layer.schedule.unroll.kernel import invocation
from compiler_layer.schedule.unroll.matmul import convert, matrix_product
from driver_layer.abi.shave import Access


def single_pass_steps(index: int, group: Group, key_blocks: Sequence[Range]) -> Iterator[Step]:
    """Yield the steps of a group: scores block by block, softmax, context block by block."""
    states = [_State(group.operands, unit, len(key_blocks) > 1) for unit in group.units]
    queries: list[Region] = []
    for number, block in enumerate(key_blocks):
        step = Step(index)
        if number == 0:
            queries = group.load_queries(step)
        for state, q, keys in zip(states, queries, group.load_keys(step, block), strict=True):
            step.work += state.scores_of(q, keys, block)
        if block == key_blocks[-1]:
            masks = group.load_masks(step, (0, group.positions))
            for state, mask in zip(states, masks, strict=True):
                step.work.append(state.softmax(mask))
        yield step
    for number, block in enumerate(key_blocks):
        step = Step(index)
        for state, values in zip(states, group.load_values(step, block), strict=True):
            step.work += state.context(values, block, accumulate=number > 0)
            if block == key_blocks[-1]:
                state.add_store(step)
        yield step


class _State:
    """State of a unit in CMX."""

    def __init__(self, x: Operands, unit: Unit, partial: bool) -> None:
        self._x = x
        self._unit = unit
        stacked = x.group * unit.count
        scores = stacked, unit.positions
        self._scores = unit.region("scores", "f32", scores)
        narrow = x.q.element != "f32"
        self._weights = unit.region("weights", x.q.element, scores) if narrow else self._scores
        self._out = unit.region("context", x.out.element, (stacked, x.out.shape[3]))
        summed = partial and x.out.element != "f32"
        self._sum = unit.region("sum", "f32", self._out.shape) if summed else self._out

    def scores_of(self, q: Region, keys: Rows | None, block: Range) -> list[Work]:
        """Multiply queries with a block of keys, if they attend to any position of it."""
        if keys is None:
            return []
        stacked = q.reshaped((self._scores.shape[0], q.shape[-1]))
        target = self._scores.rows(1, *self._unit.part_of(block))
        return [matrix_product(self._unit.tile, stacked, keys.as_keys(), target, self._x.scale)]

    def softmax(self, mask: Region | None) -> Work:
        """Convert scores to weights that sum to one."""
        domain = (self._x.group, self._unit.count, self._unit.positions)
        windows = [Window(self._scores.reshaped(domain), Access.READ)]
        if mask is not None:
            windows.append(Window(mask, Access.READ))
        # In place if f32: a row is read completely before it is written.
        windows.append(Window(self._weights.reshaped(domain), Access.WRITE))
        return invocation(self._unit.tile, programs.softmax(mask is not None), domain, windows)

    def context(self, values: Rows | None, block: Range, accumulate: bool) -> list[Work]:
        """Multiply weights with a block of values, and add the result to the earlier sums."""
        if values is None:
            return []
        weights = self._weights.rows(1, *self._unit.part_of(block))
        tile, weight = self._unit.tile, values.as_values()
        return [matrix_product(tile, weights, weight, self._sum, accumulate=accumulate)]

    def add_store(self, step: Step) -> None:
        """Round the context if it was summed in f32, and store it to DDR."""
        if self._sum is not self._out:
            step.work.append(convert(self._unit.tile, self._sum, self._out))
        target = self._x.heads(self._x.out, self._unit)
        source = self._out.reshaped(target.shape)
        step.stores.append(Transfer(source, target, (self._unit.tile,)))
