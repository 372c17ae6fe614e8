"""Attention: for a block of query rows of one key head, scores, softmax and context in CMX.

Scores of a block are kept for all positions; keys and values pass through in blocks, joined from
their parts on the way. So nothing but queries, keys, values and masks crosses DDR.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from compiler_layer.codegen.program import ProgramBuilder
from compiler_layer.codegen.rows import emit_softmax
from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.op import int_value
from compiler_layer.schedule.layout import HardwareOp
from compiler_layer.schedule.tasks import Region, Step, Transfer, Window, Work
from compiler_layer.schedule.unroll.blocks import ranges
from compiler_layer.schedule.unroll.kernel import invocation
from compiler_layer.schedule.unroll.matmul import convert, matrix_product
from compiler_layer.schedule.views import View
from driver_layer.abi.shave import Access, Instruction, Op

Range = tuple[int, int]


@cache
def _softmax_program(masked: bool) -> tuple[Instruction, ...]:
    """Scores, then the mask if there is one, to probabilities."""
    program = ProgramBuilder()
    scores = program.load(0)
    if masked:
        scores = program.compute(Op.ADD, scores, program.load(1))
    program.store(1 + masked, emit_softmax(program, scores))
    return program.finish()


@dataclass(frozen=True, slots=True)
class _Operands:
    """The tensors of one attention."""

    q: View
    k: tuple[View, ...]
    v: tuple[View, ...]
    mask: View | None
    out: View
    scale: float

    @property
    def length(self) -> int:
        """Key positions."""
        return sum(part.shape[2] for part in self.k)

    @property
    def group(self) -> int:
        """Query heads that share a key head."""
        return self.q.shape[1] // self.k[0].shape[1]


def unroll_attention(index: int, op: HardwareOp, attention: npu.Attention) -> Iterator[Step]:
    """Compute each block of query rows of each key head, one on each tile at a time."""
    assert attention.tile is not None and attention.tiles is not None  # noqa: PT018  # tiled
    rows, keys = (int(d) for d in attention.tile.get_values())
    x = _operands(op, attention)
    units = [
        (head, block) for head in range(x.k[0].shape[1]) for block in ranges(x.q.shape[2], rows)
    ]
    tiles = int_value(attention.tiles)
    key_blocks = ranges(x.length, keys)
    for first in range(0, len(units), tiles):
        group = [
            _Unit(x, head, block, tile)
            for tile, (head, block) in enumerate(units[first : first + tiles])
        ]
        yield from _stages(index, group, key_blocks)


def _operands(op: HardwareOp, attention: npu.Attention) -> _Operands:
    parts = len(attention.k)
    q, *rest = op.operands
    mask = rest[2 * parts] if attention.mask is not None else None
    if mask is not None:
        length = sum(part.shape[2] for part in rest[:parts])
        mask = mask.broadcast((1, mask.shape[1], q.shape[2], length))
    return _Operands(
        q=q,
        k=tuple(rest[:parts]),
        v=tuple(rest[parts : 2 * parts]),
        mask=mask,
        out=op.results[0],
        scale=attention.scale_value,
    )


def _stages(index: int, units: Sequence[_Unit], key_blocks: Sequence[Range]) -> Iterator[Step]:
    for number, block in enumerate(key_blocks):
        step = Step(index)
        for unit in units:
            unit.add_scores(step, block, first=number == 0)
            if number == len(key_blocks) - 1:
                unit.add_softmax(step)
        yield step
    for number, block in enumerate(key_blocks):
        step = Step(index)
        for unit in units:
            unit.add_context(step, block, number, partial=len(key_blocks) > 1)
            if number == len(key_blocks) - 1:
                unit.add_store(step)
        yield step


class _Unit:
    """The work of one tile: some query rows of the heads that share a key head.

    Query rows of all those heads are stacked, so that one product serves them all.
    """

    def __init__(self, x: _Operands, head: int, rows: Range, tile: int) -> None:
        self._x = x
        self._head = head
        self._rows = rows
        self._tile = tile
        count = rows[1] - rows[0]
        stacked = x.group * count
        self._q = self._region("q", x.q.element, (1, x.group, count, x.q.shape[3]))
        self._scores = self._region("scores", "f32", (stacked, x.length))
        narrow = x.q.element != "f32"
        self._weights = (
            self._region("weights", x.q.element, (stacked, x.length)) if narrow else self._scores
        )
        self._out = self._region("context", x.out.element, (stacked, x.out.shape[3]))
        self._sum = self._out
        self._mask: Region | None = None

    def _region(self, name: str, element: str, shape: tuple[int, ...]) -> Region:
        return Region.dense(f"attention.{name}", element, shape, (self._tile,))

    def _heads(self, view: View) -> View:
        """The query heads and rows of this unit, of a tensor [1, H, M, D]."""
        group = self._x.group
        heads = slice(self._head * group, (self._head + 1) * group)
        return view.sliced([slice(None), heads, slice(*self._rows), slice(None)])

    def _join(self, step: Step, parts: Sequence[View], block: Range, name: str) -> Region:
        """Load rows of keys or values, from however many parts they lie in."""
        width = parts[0].shape[3]
        whole = self._region(name, parts[0].element, (1, 1, block[1] - block[0], width))
        begin = 0
        for part in parts:
            end = begin + part.shape[2]
            low, high = max(begin, block[0]), min(end, block[1])
            if low < high:
                head = slice(self._head, self._head + 1)
                taken = slice(low - begin, high - begin)
                source = part.sliced([slice(None), head, taken, slice(None)])
                target = whole.rows(2, low - block[0], high - block[0])
                step.loads.append(Transfer(source, target, (self._tile,)))
            begin = end
        return whole.reshaped((block[1] - block[0], width))

    def add_scores(self, step: Step, block: Range, first: bool) -> None:
        """Multiply queries with a block of keys."""
        if first:
            step.loads.append(Transfer(self._heads(self._x.q), self._q, (self._tile,)))
        keys = self._join(step, self._x.k, block, "keys")
        stacked = self._q.reshaped((self._scores.shape[0], self._q.shape[3]))
        target = self._scores.rows(1, *block)
        step.work.append(matrix_product(self._tile, stacked, keys, target, self._x.scale))

    def add_softmax(self, step: Step) -> None:
        """Turn scores into weights that sum to one."""
        group, length = self._x.group, self._x.length
        count = self._rows[1] - self._rows[0]
        domain = (group, count, length)
        windows = [Window(self._scores.reshaped(domain), Access.READ)]
        if self._x.mask is not None:
            mask = self._load_mask(step, self._x.mask)
            windows.append(Window(mask, Access.READ))
        # In f32 this is in place: a row is read whole before it is written.
        windows.append(Window(self._weights.reshaped(domain), Access.WRITE))
        program = _softmax_program(self._x.mask is not None)
        step.work.append(invocation(self._tile, program, domain, windows))

    def _load_mask(self, step: Step, mask: View) -> Region:
        per_head = mask.shape[1] > 1
        view = (
            self._heads(mask)
            if per_head
            else mask.sliced([slice(None), slice(None), slice(*self._rows), slice(None)])
        )
        region = self._region("mask", mask.element, view.shape)
        step.loads.append(Transfer(view, region, (self._tile,)))
        return region.reshaped(view.shape[1:])

    def add_context(self, step: Step, block: Range, number: int, partial: bool) -> None:
        """Multiply weights with a block of values, adding to those before."""
        if number == 0 and partial and self._out.element != "f32":
            self._sum = self._region("sum", "f32", self._out.shape)
        values = self._join(step, self._x.v, block, "values").swapped()
        weights = self._weights.rows(1, *block)
        product = matrix_product(self._tile, weights, values, self._sum, accumulate=number > 0)
        step.work.append(product)

    def add_store(self, step: Step) -> None:
        """Round the context if it was summed up, and write it to memory."""
        work: list[Work] = []
        if self._sum is not self._out:
            work.append(convert(self._tile, self._sum, self._out))
        step.work += work
        target = self._heads(self._x.out)
        source = self._out.reshaped(target.shape)
        step.stores.append(Transfer(source, target, (self._tile,)))
