"""Matmuls of one row with 4-bit weights along k, by bf16 dot products.

A vector of 16-bit words is the index of look-ups (``vpermw``) that yield bf16. An index uses its 5
lowest bits, and table entry i is the value of ``i & 15``, so that only shifts are needed between
memory and look-ups. A word holds 4 weights, or 2 if groups are too short for complete vectors of 4;
activations are reordered as right shifts of the words yield the weights.

The products are exact: zero points are integers, and their differences to 4-bit numbers are exact
in bf16; f16 activations are the sum of two bf16. Each chunk's sum is scaled. With more rows, the
dots of both parts take as long as the f32 products of ``lookups``.
"""

from __future__ import annotations

from functools import partial

from llvmlite import ir

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu.finish import SumTile
from driver_layer.engines.native.dpu.flavours import NumberFormat, dot, fits_bf16
from driver_layer.engines.native.dpu.pack import turned
from driver_layer.engines.native.dpu.problem import (
    NIBBLES,
    MatmulKernel,
    MatmulProblem,
    WeightLayout,
)
from driver_layer.engines.native.dpu.rows import Row, copy_bytes, take_row
from driver_layer.engines.native.dpu.sums import sums_of
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.dpu.writer import KernelWriter
from driver_layer.engines.native.jit.emitter import F32, I8, I16, I32, I64, Emitter, Value, Variable
from driver_layer.engines.native.jit.host import Host
from driver_layer.engines.native.jit.memory_types import load_f32

_WORDS = 32
"""16-bit words of a vector."""

_VECTOR = 64
"""Bytes of a vector, and of a cache line."""

_STEP = 128
"""Rows in scratch are padded to a multiple of this many activations; no chunk is longer."""

_COLUMNS = 8
"""Columns at a time."""

_ZEROS = 256
"""Number of zero points that a byte can hold."""

_HALVES = {DType.FP16: 2, DType.BFP16: 1}
"""Number of bf16 whose sum is an activation."""


def choose(problem: MatmulProblem, host: Host) -> MatmulKernel | None:
    """Return the kernel, if it can compute the problem."""
    if not host.dots_bf16 or problem.rows > 1 or problem.layout is not WeightLayout.K:
        return None
    if problem.act not in _HALVES or problem.weight not in NIBBLES or not fits_bf16(problem):
        return None
    if problem.group % (2 * _WORDS):
        return None
    return MatmulKernel(_Nibbles.spec(problem), partial(_scratch, problem))


def _scratch(problem: MatmulProblem, m: int, n: int, k: int) -> int:
    groups = -(-k // problem.group) if problem.group else 1
    acts, sums = 8 * (k + _STEP), 4 * (n + 16)
    tables = _VECTOR * (_ZEROS + groups + 16) + 8 * n * groups
    # Tables are read a vector at a time.
    return acts + sums + tables + _VECTOR


class _Nibbles(KernelWriter):
    """Writer of one kernel."""

    family = "nibbles"

    def __init__(self, problem: MatmulProblem, e: Emitter) -> None:
        super().__init__(problem, e)
        task = self.task
        self.parts = 2 if problem.group % _STEP else 4
        self.chunk = self.parts * _WORDS
        self.halves = _HALVES[problem.act]
        self.buffer = e.room(_VECTOR)
        self.padded = task.rounded(task[Word.K], _STEP)
        self.groups = task.parts(task[Word.K], task[Word.GROUP]) if problem.group else I64(1)
        self.ahead = task.ahead(_COLUMNS)
        self.acts = self.reserve(self.padded, 2 * self.halves)
        self.plain = self.reserve(self.padded, 2)
        self.tables = self.reserve(I64(_ZEROS * _VECTOR))
        self.numbers = self.reserve(task.rounded(self.groups, 16), _VECTOR)
        self.sums = self.reserve(task.rounded(task[Word.N], 16), 4)
        self.scales = self.reserve(e.b.mul(task[Word.N], self.groups), 4)
        self.zeros = self.reserve(I64(0))

    def write(self) -> None:
        """Write the kernel's body."""
        self.take_tables(self.groups, self.scales, self.zeros)
        if self.problem.zero is not DType.UNSET:
            self._write_tables()
        super().write()

    def write_batch(self, batch: Value) -> None:
        """Write the code for one batch entry; tables are already in scratch."""
        e, problem = self.e, self.problem
        self._take_activations(batch)
        with e.loop(0, self.task[Word.N], _COLUMNS) as n:
            if {problem.scale, problem.zero} != {DType.UNSET}:
                self._write_numbers(n)
            e.store(self._block(batch, n), e.at(self.sums, self.b.mul(n, I64(4))))
        self.finish_all(batch, SumTile(self.sums, I64(0)))

    # Preparation of tables and activations

    def _write_tables(self) -> None:
        """Write a table for each zero point that a byte can hold."""
        e, b = self.e, self.b
        with e.loop(0, _ZEROS) as byte:
            zero = b.trunc(byte, I8)
            signed = self.problem.zero is DType.I8
            number = b.sitofp(zero, F32) if signed else b.uitofp(zero, F32)
            entries = b.fsub(self._entries(), e.splat(number, e.lanes))
            e.store(self._table(entries), e.at(self.tables, b.mul(byte, I64(_VECTOR))))

    def _entries(self) -> Value:
        """Return the numeric values of the 16 bit patterns, without zero point."""
        signed = self.problem.weight is DType.I4
        numbers = [float(x - 16 if signed and x > 7 else x) for x in range(16)]
        return ir.Constant(ir.VectorType(F32, 16), numbers)

    def _table(self, entries: Value) -> Value:
        """Return the entries as bf16, exactly, and repeated."""
        bits = _upper(self.e, entries)
        return self.e.lanes_of(bits, bits, range(_WORDS))

    def _take_activations(self, batch: Value) -> None:
        """Convert the row to bf16 in scratch."""
        e, task = self.e, self.task
        source = task.address(Word.ACT, (batch, Word.ACT_B))
        row = Row(self.problem.act, source, task[Word.ACT_K], task[Word.K])
        for half, take in enumerate([self._high, self._low][: self.halves]):
            take_row(e, row, self.plain, take, (I16(0), self.padded), e.lanes)
            self._reorder(e.at(self.acts, _VECTOR * half))

    def _high(self, address: Value, width: int) -> Value:
        """Load activations truncated to bf16."""
        return _upper(self.e, load_f32(self.e, address, self.problem.act, width))

    def _low(self, address: Value, width: int) -> Value:
        """Return the remainders of ``_high``, exact in bf16; 0 for infinities."""
        e, b = self.e, self.b
        value = load_f32(e, address, self.problem.act, width)
        bits = b.bitcast(value, e.vector(I32, width))
        high = b.bitcast(b.and_(bits, e.splat(I32(-65536), width)), value.type)
        rest = b.fsub(value, high)
        number = b.fcmp_ordered("ord", rest, rest)
        return _upper(e, b.select(number, rest, e.zero(width)))

    def _reorder(self, target: Value) -> None:
        """Reorder the row's bf16 as shifts of words yield the weights."""
        e, b = self.e, self.b
        parts = ir.VectorType(I16, _WORDS)
        with e.loop(0, self.padded, self.chunk) as k:
            wide = e.load(e.at(self.plain, b.mul(k, I64(2))), ir.IntType(16 * self.parts), _WORDS)
            for part in range(self.parts):
                bits = e.splat(ir.Constant(wide.type.element, 16 * part), _WORDS)
                place = e.at(target, b.mul(k, I64(2 * self.halves)))
                value = b.trunc(b.lshr(wide, bits), parts)
                e.store(value, e.at(place, _VECTOR * self.halves * part))

    # Sums of a block of columns

    def _write_numbers(self, n: Value) -> None:
        """Store a block's scales and table offsets together, by group."""
        e, b, problem, lanes = self.e, self.b, self.problem, self.e.lanes
        words = ir.VectorType(I32, lanes)
        nothing: list[Value] = [ir.Constant(words, ir.Undefined)] * _COLUMNS
        columns = self.columns_from(n, _COLUMNS, self.task[Word.N])
        rows = [b.mul(column, self.groups) for column in columns]

        def numbers(table: Value, group: Value) -> list[Value]:
            places = [e.at(table, b.mul(b.add(row, group), I64(4))) for row in rows]
            return [e.load(place, F32, lanes) for place in places]

        def offset(zero: Value) -> Value:
            byte = b.and_(b.fptosi(zero, words), e.splat(I32(_ZEROS - 1), lanes))
            return b.mul(byte, e.splat(I32(_VECTOR), lanes))

        with e.loop(0, self.groups, lanes) as group:
            scales, offsets = nothing, nothing
            if problem.scale is not DType.UNSET:
                scales = [b.bitcast(scale, words) for scale in numbers(self.scales, group)]
            if problem.zero is not DType.UNSET:
                offsets = [offset(zero) for zero in numbers(self.zeros, group)]
            target = e.at(self.numbers, b.mul(group, I64(_VECTOR)))
            for i, one_group in enumerate(turned(e, scales + offsets)):
                e.store(one_group, e.at(target, _VECTOR * i))

    def _block(self, batch: Value, n: Value) -> Value:
        """Return the sums of the block's columns: complete chunks, then the remainder.

        Beyond k, activations are zeros.
        """
        e, b, task = self.e, self.b, self.task
        weights = self.weights_of(batch, self.columns_from(n, _COLUMNS, task[Word.N]))
        totals = [e.variable(e.zero(e.lanes)) for _ in weights]
        whole = b.and_(task[Word.K], I64(-self.chunk))
        numbers, end = e.variable(self.numbers), e.variable(task[Word.GROUP])
        with e.loop(0, whole, self.chunk) as k:
            offset = b.lshr(k, I64(1))
            ahead = b.add(offset, self.ahead)
            acts = self._acts(k)
            for column, (weight, total) in enumerate(zip(weights, totals, strict=True)):
                e.prefetch(e.at(weight, ahead))
                self._multiply(e.at(weight, offset), acts, (numbers.get(), column), total)
            if self.problem.group:
                last = b.icmp_signed(">=", b.add(k, I64(self.chunk)), end.get())
                numbers.set(e.at(numbers.get(), b.select(last, I64(_VECTOR), I64(0))))
                end.set(b.add(end.get(), b.select(last, task[Word.GROUP], I64(0))))
        left = b.sub(task[Word.K], whole)
        with b.if_then(b.icmp_signed(">", left, I64(0)), likely=False):
            offset = b.lshr(whole, I64(1))
            count = b.lshr(b.add(left, I64(1)), I64(1))
            acts = self._acts(whole)
            for column, (weight, total) in enumerate(zip(weights, totals, strict=True)):
                copy_bytes(e, e.at(weight, offset), count, self.buffer, (0, _VECTOR))
                self._multiply(self.buffer, acts, (numbers.get(), column), total)
        return sums_of(e, [total.get() for total in totals])

    def _acts(self, k: Value) -> list[list[Value]]:
        """Load a chunk of activations: one or two vectors of bf16 for each nibble of the words."""
        e = self.e
        first = e.at(self.acts, self.b.mul(k, I64(2 * self.halves)))
        halves = range(self.halves)
        return [
            [e.load(e.at(first, _VECTOR * (self.halves * part + i)), I16, _WORDS) for i in halves]
            for part in range(self.parts)
        ]

    def _multiply(
        self, place: Value, acts: list[list[Value]], numbers: tuple[Value, int], total: Variable
    ) -> None:
        """Add the products of a column's chunk; ``numbers`` is (the group's numbers, column)."""
        e, b, (group, column) = self.e, self.b, numbers
        weights = self._weights(place, self._looked_up(e.at(group, 4 * (_COLUMNS + column))))
        # Products alternate between two sums, to shorten the dependence chain.
        sums = [e.zero(e.lanes), e.zero(e.lanes)]
        pairs = ((act, weights[part]) for part, halves in enumerate(acts) for act in halves)
        for i, (act, weight) in enumerate(pairs):
            sums[i % 2] = dot(e, NumberFormat.BF16, sums[i % 2], act, weight)
        value = b.fadd(sums[0], sums[1])
        if self.problem.scale is DType.UNSET:
            total.set(b.fadd(value, total.get()))
            return
        scale = e.splat(e.load(e.at(group, 4 * column), F32), e.lanes)
        total.set(e.fma(value, scale, total.get()))

    def _looked_up(self, offset: Value) -> Value:
        """Return the table of a column's group, whose offset is at an address."""
        e = self.e
        if self.problem.zero is DType.UNSET:
            return self._table(self._entries())
        return e.load(e.at(self.tables, self.b.zext(e.load(offset, I32), I64)), I16, _WORDS)

    def _weights(self, place: Value, table: Value) -> list[Value]:
        """Load a chunk of a column's weights, part by part."""
        e, packed = self.e, self._packed(place)
        name, kind = "llvm.x86.avx512.permvar.hi.512", ir.VectorType(I16, _WORDS)
        shifted = [packed]
        for part in range(1, self.parts):
            shifted.append(self.b.lshr(packed, e.splat(I16(4 * part), _WORDS)))
        return [e.external(name, table, index, result=kind) for index in shifted]

    def _packed(self, place: Value) -> Value:
        """Load a chunk of weights, ``parts`` of them in each word."""
        if self.parts == 4:
            return self.e.load(place, I16, _WORDS)
        return self.b.zext(self.e.load(place, I8, _WORDS), ir.VectorType(I16, _WORDS))


def _upper(e: Emitter, value: Value) -> Value:
    """Return the upper 16 bits of f32: bf16, rounded toward zero."""
    width = value.type.count if isinstance(value.type, ir.VectorType) else 1
    bits = e.b.bitcast(value, e.vector(I32, width))
    return e.b.trunc(e.b.lshr(bits, e.splat(I32(16), width)), e.vector(I16, width))
