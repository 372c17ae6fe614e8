"""Rows of floats as digits, those of all rows together.

Numbers of a row and a block of k share a unit, and become fixed-point numbers of three signed bytes
(``fixed_point``). The digits of 4 k, of all rows that are multiplied at a time, are stored next to
each other: row by row, the lowest digit first.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from llvmlite import ir

from driver_layer.engines.native.dpu.fixed_point import FixedRow
from driver_layer.engines.native.dpu.flavours import NumberFormat, dot
from driver_layer.engines.native.dpu.pack import turned
from driver_layer.engines.native.dpu.problem import NIBBLES, MatmulProblem
from driver_layer.engines.native.dpu.rows import widen_row
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.dpu.writer import KernelWriter
from driver_layer.engines.native.jit.emitter import F32, I1, I32, I64, Emitter, Value

LANES = 16
"""32-bit lanes of a vector."""

VECTOR = 64
"""Bytes of a vector."""

DIGITS = 3
"""Signed bytes of a number."""

BLOCK = 512
"""Maximum k of a block: sums of a byte's products are exact in f32."""

_STEP = 128
"""Rows in scratch are padded to a multiple of this many numbers, as are blocks without groups."""

ROWS = 8
"""Maximum of rows at a time: more sums would leave too few registers."""


class Block(NamedTuple):
    """A range of k within one group, whose numbers share a unit."""

    number: Value
    begin: Value
    length: Value


def acts_scratch(problem: MatmulProblem, k: int) -> int:
    """Return the bytes of scratch of ``DigitRows``."""
    passes, rows = problem.passes(ROWS)
    padded, pitch = k + _STEP, _pitch(rows)
    blocks = -(-k // (problem.group or BLOCK))
    acts = padded * (4 + DIGITS * passes * rows + passes * pitch // 4)
    return acts + blocks * passes * (4 * rows + pitch) + VECTOR


def _pitch(rows: int) -> int:
    """Return the bytes of the digits of rows, for 4 numbers of each: complete vectors."""
    return -(-DIGITS * rows // LANES) * VECTOR


class DigitRows(KernelWriter):
    """Writer of the code that converts activations.

    Groups, if any, are multiples of 64.
    """

    def __init__(self, problem: MatmulProblem, e: Emitter) -> None:
        super().__init__(problem, e)
        task, b = self.task, self.b
        self.passes, self.rows_at_once = problem.passes(ROWS)
        self.rows = self.passes * self.rows_at_once
        self.unit_bytes = _pitch(self.rows_at_once)
        """Bytes from digits to those of the next 4 k."""
        self.nibbles = problem.weight in NIBBLES
        self.size = self._size()
        """Size of a block."""
        blocks = task.parts(task[Word.K], self.size)
        self.padded = task.rounded(task[Word.K], _STEP)
        # All places in scratch are aligned to vectors.
        self._plain = self.reserve(self.padded, 4)
        self._planes = self.reserve(self.padded, DIGITS * self.rows)
        """Digits by row and weight, along k."""
        self._pass_bytes = b.mul(self.padded, I64(self.unit_bytes // 4))
        self._digits = self.reserve(self._pass_bytes, self.passes)
        self._units = self.reserve(task.rounded(b.mul(blocks, I64(4 * self.rows)), VECTOR))
        self._totals = self.reserve(b.mul(blocks, I64(self.unit_bytes)), self.passes)

    def _size(self) -> Value:
        b, task = self.b, self.task
        if self.problem.group:
            fits = b.icmp_signed("<=", task[Word.GROUP], I64(BLOCK))
            return b.select(fits, task[Word.GROUP], I64(self.problem.group))
        # Blocks of nearly equal size.
        count = task.parts(task[Word.K], I64(BLOCK))
        return task.rounded(task.parts(task[Word.K], count), _STEP)

    @contextmanager
    def blocks(self, begin: Value, end: Value) -> Generator[Block, None, None]:
        """Open a loop over the blocks of a range of k."""
        e, b, task = self.e, self.b, self.task
        with e.loop(begin, end, self.size) as k:
            yield Block(b.udiv(k, self.size), k, task.least(b.sub(end, k), self.size))

    def take_activations(self, batch: Value) -> Value:
        """Convert rows to digits in scratch; return whether all suit fixed point.

        Missing rows, and numbers beyond k, are zeros.
        """
        e, b, task = self.e, self.b, self.task
        usable = e.variable(I1(1))
        with e.loop(0, self.rows) as row:
            widen_row(e, self.act_row(batch, row), self._plain, self.padded)
            fixed = FixedRow(e, self._plain, DIGITS, VECTOR)
            with self.blocks(I64(0), task[Word.K]) as block:
                end = b.add(block.begin, task.rounded(block.length, VECTOR))
                unit = fixed.round(block.begin, end, partial(self._store, row))
                e.store(unit, self.units(block, row))
            usable.set(b.and_(usable.get(), fixed.usable()))
        return usable.get()

    def _store(self, row: Value, k: Value, digits: list[Value]) -> None:
        """Write the digits of a chunk, in the order of packed weights."""
        e, order = self.e, range(VECTOR)
        if self.nibbles:
            order = [8 * (i // 8) + 2 * (i % 4) + (i // 4) % 2 for i in order]
        for number, digit in enumerate(digits):
            place = e.at(self._plane(row, number), k)
            e.store(e.lanes_of(digit, digit, order), place)

    def _plane(self, row: Value, number: int) -> Value:
        """Return the address of one digit of a row."""
        b = self.b
        index = b.add(b.mul(row, I64(DIGITS)), I64(number))
        return self.e.at(self._planes, b.mul(index, self.padded))

    def interleave(self) -> None:
        """Store all digits of the same 4 k together."""
        e, b = self.e, self.b
        squares = self.unit_bytes // VECTOR
        filler = [e.whole(0, LANES)] * (squares * LANES - DIGITS * self.rows_at_once)
        with e.loop(0, self.passes) as turn, e.loop(0, self.padded, VECTOR) as k:
            first = b.mul(turn, I64(self.rows_at_once))
            planes = [
                e.load(e.at(self._plane(b.add(first, I64(row)), number), k), I32, LANES)
                for row in range(self.rows_at_once)
                for number in range(DIGITS)
            ]
            planes += filler
            target = self.digits(turn, k)
            for square in range(squares):
                some = planes[LANES * square : LANES * (square + 1)]
                for unit, digits in enumerate(turned(e, some)):
                    e.store(digits, e.at(target, self.unit_bytes * unit + VECTOR * square))

    def digits(self, turn: Value, k: Value) -> Value:
        """Return the address of a pass's digits from k on."""
        b = self.b
        offset = b.add(b.mul(turn, self._pass_bytes), b.mul(k, I64(self.unit_bytes // 4)))
        return self.e.at(self._digits, offset)

    def take_totals(self) -> None:
        """Sum the digits of each block."""
        e, b = self.e, self.b
        ones = e.splat(I32(0x01010101), LANES)
        offsets = range(0, self.unit_bytes, VECTOR)
        with self.blocks(I64(0), self.task[Word.K]) as block, e.loop(0, self.passes) as turn:
            totals = [e.variable(e.whole(0, LANES)) for _ in offsets]
            digits = self.digits(turn, block.begin)
            with e.loop(0, self.vectors_of(block)) as unit:
                place = e.at(digits, b.mul(unit, I64(self.unit_bytes)))
                for offset, total in zip(offsets, totals, strict=True):
                    some = e.load(e.at(place, offset), I32, LANES)
                    total.set(dot(e, NumberFormat.BYTES, total.get(), ones, some))
            for offset, total in zip(offsets, totals, strict=True):
                negated = b.sitofp(b.neg(total.get()), ir.VectorType(F32, LANES))
                e.store(negated, e.at(self.totals(block, turn), offset))

    def units(self, block: Block, row: Value) -> Value:
        """Return the address of a block's units, from a row on."""
        at = self.b.add(self.b.mul(block.number, I64(self.rows)), row)
        return self.e.at(self._units, self.b.mul(at, I64(4)))

    def totals(self, block: Block, turn: Value) -> Value:
        """Return the address of a block's sums of each digit of a pass's rows, negated, as f32."""
        b = self.b
        index = b.add(b.mul(block.number, I64(self.passes)), turn)
        return self.e.at(self._totals, b.mul(index, I64(self.unit_bytes)))

    def vectors_of(self, block: Block) -> Value:
        """Return the number of vectors of weights of a block: a multiple of 4."""
        return self.b.lshr(self.task.rounded(block.length, 16), I64(2))
