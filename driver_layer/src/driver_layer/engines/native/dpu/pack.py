"""Packing of weights into 32-bit units along k, with the units of a vector of columns together.

A block is a range of k within one group. Each packed vector of columns is a run: a head with the
values that its sums need (``head_vectors``: scales, or corrections for integers), then a vector of
units for each step of k. For weights that are sums of two parts, the units of the lower parts
follow.

Weights along k are read in squares of 32-bit words, with a row for each column, which are then
transposed: a vector holds the same few k of all its columns. An incomplete square at the end of a
block is copied to a buffer, so that no byte beyond the operand is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from driver_layer.abi.dtypes import FLOAT8, DType
from driver_layer.engines.native.dpu.flavours import NumberFormat, dot, halves_of
from driver_layer.engines.native.dpu.problem import NIBBLES, SIZES, MatmulProblem, WeightLayout
from driver_layer.engines.native.dpu.rows import copy_bytes
from driver_layer.engines.native.dpu.tables import column_numbers, dequantised
from driver_layer.engines.native.dpu.task import KernelArguments
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.jit.emitter import F32, I8, I16, I32, I64, Emitter, Value
from driver_layer.engines.native.jit.memory_types import load_f32
from driver_layer.engines.native.jit.small_floats import widen_f8, widen_f16

_HALF_BITS = 16


def head_vectors(problem: MatmulProblem, flavour: NumberFormat) -> int:
    """Return the number of head vectors before a run's units."""
    if flavour is NumberFormat.BYTES:
        return 2
    return int(flavour.scales_sums and not flavour.whole and problem.column_scales)


def square_steps(problem: MatmulProblem, lanes: int) -> tuple[int, int]:
    """Return the number of 32-bit words of a column in a square, and of weights in them.

    Blocks are padded to that number of k; without squares, to 8.
    """
    if problem.layout is WeightLayout.N:
        return lanes, 8
    per_word = 8 if problem.weight in NIBBLES else 4 // SIZES[problem.weight]
    words = lanes
    while problem.group and words > 1 and problem.group % (words * per_word):
        words //= 2
    return words, words * per_word


@dataclass(frozen=True, slots=True)
class PackedBlock:
    """Some columns, and a range of k within one group."""

    batch: Value
    n: Value
    k: Value
    count: Value
    """Number of k."""
    group: Value


class Packer:
    """Writer of the packing code.

    Args:
        flavour: number format of the packed weights.
        task: the kernel's arguments.
        lower: bytes from the units to those of the lower parts, if there are any.
    """

    def __init__(self, flavour: NumberFormat, task: KernelArguments, lower: int = 0) -> None:
        self.problem, self.flavour, self.task = task.problem, flavour, task
        problem = task.problem
        self.e, self.b = task.e, task.e.b
        self.lanes = task.e.lanes
        self.packed = problem.weight in NIBBLES
        self.size = SIZES[problem.weight]
        self.lower = lower
        self.ahead = task.ahead(self.lanes)
        self.words, self.step = square_steps(problem, self.lanes)
        self.buffer = self.e.room(4 * self.lanes * self.lanes)
        self._moves = flavour is NumberFormat.BYTES and problem.weight is DType.U8

    def pack(self, block: PackedBlock, run: Value, units: Value | None = None) -> None:
        """Write the run of the vector of columns at ``block.n``.

        Args:
            block: block to pack.
            run: address of the run's head.
            units: address of the units; by default after the head.
        """
        e, problem = self.e, self.problem
        place = block.n, block.group
        zeros = column_numbers(self.task, Word.ZERO, place, self.lanes)
        scales = column_numbers(self.task, Word.SCALE, place, self.lanes)
        head = head_vectors(problem, self.flavour)
        units = e.at(run, 4 * self.lanes * head) if units is None else units
        if self.flavour is NumberFormat.BYTES:
            self._pack_bytes(block, run, units, zeros)
            return
        if head:
            assert scales is not None
            e.store(scales, run)
        if self.flavour.scales_sums:
            scales = None
        if problem.layout is WeightLayout.N:
            self._pack_rows(block, units, (zeros, scales))
        else:
            self._pack_squares(block, units, (zeros, scales))

    # Weights along n

    def _pack_rows(self, block: PackedBlock, units: Value, tables: _Tables) -> None:
        e, b, task = self.e, self.b, self.task
        size, per_unit = self.size, self.flavour.per_unit
        first = task.address(
            Word.WEIGHT,
            (block.batch, Word.WEIGHT_B),
            (block.n, Word.WEIGHT_N),
            (block.k, Word.WEIGHT_K),
        )
        there = b.mul(task.least(b.sub(task[Word.N], block.n), I64(self.lanes)), I64(size))
        partly = b.icmp_signed("<", there, I64(self.lanes * size))

        def number(k: Value) -> Value:
            row = e.variable(e.at(first, b.mul(k, task[Word.WEIGHT_K])))
            with b.if_then(partly, likely=False):
                copy_bytes(e, row.get(), there, self.buffer, (0, self.lanes * size))
                row.set(self.buffer)
            value = load_f32(e, row.get(), self.problem.weight, self.lanes)
            return dequantised(task, value, *self._tables_at(b.add(block.k, k), tables))

        def store(k: Value, numbers: list[Value]) -> None:
            for part, found in enumerate(self._units(numbers)):
                e.store(found[0], e.at(units, b.add(self._unit_offset(k), I64(part * self.lower))))

        whole = b.and_(block.count, I64(-per_unit))
        with e.loop(0, whole, per_unit) as k:
            store(k, [number(b.add(k, I64(i))) for i in range(per_unit)])
        if per_unit > 1:
            with e.loop(whole, block.count, per_unit) as k:
                store(k, [number(k), e.zero(self.lanes)])
        begin = task.rounded(block.count, per_unit)
        with e.loop(begin, task.rounded(block.count, self.step), per_unit) as k:
            for part in range(self.flavour.weight_parts):
                place = b.add(self._unit_offset(k), I64(part * self.lower))
                e.store(self._splat(0), e.at(units, place))

    def _tables_at(self, k: Value, tables: _Tables) -> _Tables:
        """Return the zero points and scales of the columns' weights at a k."""
        if self.flavour.scales_sums or not self.problem.common_scales:
            return tables
        return None, self.e.splat(self.task.common_scale(k), self.lanes)

    def _unit_offset(self, k: Value) -> Value:
        """Return the byte offset of the units of a block's k, from the run's first unit."""
        return self.b.mul(self.b.sdiv(k, I64(self.flavour.per_unit)), I64(4 * self.lanes))

    # Weights along k

    def _pack_squares(self, block: PackedBlock, units: Value, tables: _Tables) -> None:
        def store(word: Value, k: Value, number: int) -> None:
            target = self.e.at(units, self._unit_offset(k))
            first = self.b.add(self.b.add(block.k, k), I64(number * (self.step // self.words)))
            for part, found in enumerate(self._numbers(word, first, tables)):
                for place, unit in enumerate(found, number * len(found)):
                    offset = part * self.lower + 4 * self.lanes * place
                    self.e.store(unit, self.e.at(target, offset))

        self._squares(block, store)

    def _pack_bytes(
        self, block: PackedBlock, run: Value, units: Value, zeros: Value | None
    ) -> None:
        """Pack bytes as i8, and the corrections that center their products.

        Activations a and weights w are shifted by 128 where needed, and their zero points p and q
        likewise. The sum of ``(a - p) * (w - q)`` is the sum of ``a * w``, less p times the sum of
        w, plus p * q for each k, less q times the sum of a. Padding is 0 after the shift.
        """
        e, b, task, problem = self.e, self.b, self.task, self.problem
        i32 = ir.VectorType(I32, self.lanes)
        total = e.variable(self._splat(0))
        moved = self._splat(-0x7F7F7F80 if self._moves else 0)

        def store(word: Value, k: Value, number: int) -> None:
            unit = b.xor(word, moved)
            total.set(dot(e, self.flavour, total.get(), self._splat(0x01010101), unit))
            target = e.at(units, self._unit_offset(k))
            e.store(unit, e.at(target, 4 * self.lanes * number))

        self._squares(block, store)
        q = self._splat(0) if zeros is None else b.fptosi(zeros, i32)
        if self._moves:
            q = b.sub(q, self._splat(128))
        p = e.splat(b.trunc(moved_zero(problem, task), I32), self.lanes)
        steps = e.splat(b.trunc(block.count, I32), self.lanes)
        e.store(b.mul(p, b.sub(b.mul(steps, q), total.get())), run)
        e.store(b.sub(self._splat(0), q), e.at(run, 4 * self.lanes))

    def _squares(self, block: PackedBlock, store: _Store) -> None:
        """Pass all words of the block to ``store``, as vectors with a word of each column."""
        e, b, task = self.e, self.b, self.task
        last = b.sub(task[Word.N], I64(1))
        first = self._bytes(block.k)
        begins: list[Value] = []
        for i in range(self.lanes):
            n = task.least(b.add(block.n, I64(i)), last)
            parts = (block.batch, Word.WEIGHT_B), (n, Word.WEIGHT_N)
            begins.append(e.at(task.address(Word.WEIGHT, *parts), first))
        size = 4 * self.words
        padding = -128 if self._moves else 0, size
        with e.loop(0, block.count, self.step) as k:
            offset, left = self._bytes(k), b.sub(block.count, k)
            partly = b.icmp_signed("<", left, I64(self.step))
            with b.if_then(partly, likely=False):
                count = self._bytes(b.add(left, I64(1)) if self.packed else left)
                with e.loop(0, self.lanes) as i:
                    n = task.least(b.add(block.n, i), last)
                    parts = (block.batch, Word.WEIGHT_B), (n, Word.WEIGHT_N)
                    source = e.at(task.address(Word.WEIGHT, *parts), b.add(first, offset))
                    copy_bytes(e, source, count, e.at(self.buffer, b.mul(i, I64(size))), padding)
            rows: list[Value] = []
            for i, begin in enumerate(begins):
                row = e.at(begin, offset)
                e.prefetch(e.at(row, self.ahead))
                rows.append(b.select(partly, e.at(self.buffer, size * i), row))
            self._square(rows, k, store)

    def _bytes(self, k: Value) -> Value:
        return self.b.lshr(k, I64(1)) if self.packed else self.b.mul(k, I64(self.size))

    def _square(self, rows: list[Value], k: Value, store: _Store) -> None:
        e, lanes, words = self.e, self.lanes, self.words
        vectors = [e.load(row, I32, words) for row in rows]
        if words == 1:
            one: Value = ir.Constant(ir.VectorType(I32, lanes), ir.Undefined)
            for lane, value in enumerate(vectors):
                one = self.b.insert_element(one, value, I32(lane))
            store(one, k, 0)
            return
        if words < lanes:
            nothing = ir.Constant(ir.VectorType(I32, words), ir.Undefined)
            wide = [i % words for i in range(lanes)]
            vectors = [e.lanes_of(vector, nothing, wide) for vector in vectors]
        for number, word in enumerate(turned(e, vectors)[:words]):
            store(word, k, number)

    def _numbers(self, word: Value, first: Value, tables: _Tables) -> list[list[Value]]:
        """Return the units of the weights in some words, from k ``first`` on, for each part."""
        if self.flavour is not NumberFormat.F32 and self.problem.weight is DType.BFP16:
            return [[word]]
        parts = 8 if self.packed else 4 // self.size
        weights = [
            dequantised(
                self.task,
                self._part(word, i),
                *self._tables_at(self.b.add(first, I64(i)), tables),
            )
            for i in range(parts)
        ]
        return self._units(weights)

    def _units(self, numbers: list[Value]) -> list[list[Value]]:
        """Return the units of f32 vectors, whose numbers are exact in the format, for each part."""
        b, i32 = self.b, ir.VectorType(I32, self.lanes)
        if self.flavour is NumberFormat.F32:
            return [[b.bitcast(number, i32) for number in numbers]]
        if self.flavour is NumberFormat.WORDS:
            half = self._splat(_HALF_BITS)
            return [self._pairs([b.shl(b.fptosi(number, i32), half) for number in numbers])]
        if self.flavour.weight_parts == 2:
            halves = [halves_of(self.e, number, guarded=True) for number in numbers]
            return [self._pairs(list(part)) for part in zip(*halves, strict=True)]
        return [self._pairs([b.bitcast(number, i32) for number in numbers])]

    def _pairs(self, words: list[Value]) -> list[Value]:
        """Pack the upper halves of two words into one, for pairs of words."""
        b, half, upper = self.b, self._splat(_HALF_BITS), self._splat(-65536)
        return [
            b.or_(b.lshr(low, half), b.and_(high, upper))
            for low, high in zip(words[::2], words[1::2], strict=True)
        ]

    def _splat(self, value: int) -> Value:
        return self.e.splat(I32(value), self.lanes)

    def _part(self, word: Value, part: int) -> Value:
        """Return weight ``part`` of each word, as f32."""
        b, kind = self.b, self.problem.weight
        f32 = ir.VectorType(F32, self.lanes)
        if kind is DType.FP32:
            return b.bitcast(word, f32)
        if kind is DType.BFP16:
            bits = b.and_(word, self._splat(-65536)) if part else b.shl(word, self._splat(16))
            return b.bitcast(bits, f32)
        if kind is DType.FP16:
            raw = b.lshr(word, self._splat(16)) if part else word
            return widen_f16(self.e, b.trunc(raw, ir.VectorType(I16, self.lanes)), self.lanes)
        if kind in FLOAT8:
            raw = b.lshr(word, self._splat(8 * part)) if part else word
            byte = b.trunc(raw, ir.VectorType(I8, self.lanes))
            return widen_f8(self.e, byte, kind, self.lanes)
        width = 4 if self.packed else 8
        if kind in (DType.I8, DType.I4):
            above = 32 - width * (part + 1)
            moved = b.shl(word, self._splat(above)) if above else word
            return b.sitofp(b.ashr(moved, self._splat(32 - width)), f32)
        moved = b.lshr(word, self._splat(width * part)) if part else word
        return b.sitofp(b.and_(moved, self._splat((1 << width) - 1)), f32)


def turned(e: Emitter, rows: list[Value]) -> list[Value]:
    """Transpose a square; each pass interleaves rows that are half the square apart."""
    lanes = e.lanes
    low = [lane // 2 + lanes * (lane % 2) for lane in range(lanes)]
    high = [number + lanes // 2 for number in low]
    for _ in range(lanes.bit_length() - 1):
        pairs = zip(rows[: lanes // 2], rows[lanes // 2 :], strict=True)
        rows = [e.lanes_of(x, y, order) for x, y in pairs for order in (low, high)]
    return rows


def moved_zero(problem: MatmulProblem, task: KernelArguments) -> Value:
    """Return the zero point of packed activations; those of i8 are shifted to u8."""
    return task.e.b.add(task[Word.ACT_ZERO], I64(128 if problem.act is DType.I8 else 0))


_Tables = tuple[Value | None, Value | None]
"""Zero points and scales of a vector of columns."""

_Store = Callable[[Value, Value, int], None]
"""Accepts a vector of words, the k at which their square begins, and their number in it."""
