"""Matmuls of few rows of integers with bytes along k, by byte dot products.

The instruction multiplies u8 with i8. Weights are used as stored in memory; activations are
converted to the other sign once per task, in scratch, by a shift of 128 where needed. Sums are
exact.

For activations a with a zero point p, shifted likewise, and weights w with a zero point q, the sum
of ``(a - p) * (w - q)`` is the sum of ``a * w``, less p times the sum of w, less q times the sum
of a, plus p * q for each k.
"""

from __future__ import annotations

from functools import partial

from llvmlite import ir

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu.finish import SumTile
from driver_layer.engines.native.dpu.flavours import NumberFormat, dot
from driver_layer.engines.native.dpu.problem import BYTES, MatmulKernel, MatmulProblem, WeightLayout
from driver_layer.engines.native.dpu.rows import copy_bytes, take_row
from driver_layer.engines.native.dpu.sums import sums_of, sums_of_rows
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.dpu.writer import KernelWriter
from driver_layer.engines.native.jit.emitter import F32, I8, I32, I64, Emitter, Value, Variable
from driver_layer.engines.native.jit.host import Host

MOST_ROWS = 4

_VECTOR = 64
"""Bytes of a vector, and of a cache line."""

_COLUMNS = 4
"""Columns at a time."""


def choose(problem: MatmulProblem, host: Host) -> MatmulKernel | None:
    """Return the kernel, if it can compute the problem."""
    if not host.dots_bytes or problem.rows > MOST_ROWS or problem.layout is not WeightLayout.K:
        return None
    if problem.act not in BYTES or problem.weight not in BYTES or problem.group:
        return None
    if problem.zero not in BYTES | {DType.UNSET}:
        return None
    return MatmulKernel(_Quads.spec(problem), partial(_scratch, problem.rows))


def _scratch(rows: int, m: int, n: int, k: int) -> int:
    return rows * (k + _VECTOR) + 4 * (rows + 2) * (n + 16)


class _Quads(KernelWriter):
    """Writer of one kernel."""

    family = "quads"

    def __init__(self, problem: MatmulProblem, e: Emitter) -> None:
        super().__init__(problem, e)
        task = self.task
        self.signed = problem.weight is DType.I8
        self.moves = (problem.act is DType.I8) is self.signed
        """True if activations are shifted by 128: up to u8, or down to i8."""
        self.buffer = e.room(_VECTOR)
        self.padded = task.rounded(task[Word.K], _VECTOR)
        self.ahead = task.ahead(_COLUMNS)
        self.pitch = e.b.mul(task.rounded(task[Word.N], 16), I64(4))
        self.acts = self.reserve(self.padded, self.rows)
        self.sums = self.reserve(self.pitch, self.rows)
        self.scales, self.zeros = self.reserve(self.pitch), self.reserve(self.pitch)

    def write(self) -> None:
        """Write the kernel's body."""
        self.take_tables(I64(1), self.scales, self.zeros)
        super().write()

    def write_batch(self, batch: Value) -> None:
        """Write the code for one batch entry; tables are already in scratch."""
        e, b = self.e, self.b
        self._take_activations(batch)
        totals = [self._total(row) for row in range(self.rows)]
        with e.loop(0, self.task[Word.N], _COLUMNS) as n:
            for row, sums in enumerate(self._block(batch, n, totals)):
                place = b.add(b.mul(self.pitch, I64(row)), b.mul(n, I64(4)))
                e.store(sums, e.at(self.sums, place))
        scales = None if self.problem.scale is DType.UNSET else self.scales
        self.finish_all(batch, SumTile(self.sums, self.pitch, whole=True, scales=scales))

    def _take_activations(self, batch: Value) -> None:
        """Convert rows in scratch; missing rows, and elements beyond k, are zeros."""
        e, b = self.e, self.b

        def take(address: Value, width: int) -> Value:
            value = e.load(address, I8, width)
            return b.xor(value, e.splat(I8(-128), width)) if self.moves else value

        for row in range(self.rows):
            taken = self.act_row(batch, I64(row))
            target = e.at(self.acts, b.mul(self.padded, I64(row)))
            take_row(e, taken, target, take, (I8(0), self.padded), _VECTOR)

    def _total(self, row: int) -> Value:
        """Return the sum of a row, an i32."""
        e, b = self.e, self.b
        total = e.variable(self._nothing())
        with e.loop(0, self.padded, _VECTOR) as k:
            total.set(self._dot(total.get(), self._act(row, k), self._ones()))
        return e.reduce(total.get(), b.add)

    # Sums of a block of columns

    def _block(self, batch: Value, n: Value, totals: list[Value]) -> list[Value]:
        """Return the sums of each row with the block's columns, one vector of i32 per row."""
        e, b, task = self.e, self.b, self.task
        weights = self.weights_of(batch, self.columns_from(n, _COLUMNS, task[Word.N]))
        # The last row consists of ones and yields the sums of weights.
        sums = [[e.variable(self._nothing()) for _ in weights] for _ in range(self.rows + 1)]
        whole = b.and_(task[Word.K], I64(-_VECTOR))
        with e.loop(0, whole, _VECTOR) as k:
            ahead = b.add(k, self.ahead)
            for column, weight in enumerate(weights):
                e.prefetch(e.at(weight, ahead))
                self._multiply(e.at(weight, k), k, [row[column] for row in sums])
        left = b.sub(task[Word.K], whole)
        with b.if_then(b.icmp_signed(">", left, I64(0)), likely=False):
            for column, weight in enumerate(weights):
                copy_bytes(e, e.at(weight, whole), left, self.buffer, (0, _VECTOR))
                self._multiply(self.buffer, whole, [row[column] for row in sums])
        *rows, ones = [[one.get() for one in row] for row in sums]
        return self._centred(n, sums_of_rows(e, rows), totals, sums_of(e, ones))

    def _multiply(self, place: Value, k: Value, sums: list[Variable]) -> None:
        """Add the products of a vector of a column's weights."""
        weight = self.e.load(place, I8, _VECTOR)
        acts = [self._act(row, k) for row in range(self.rows)]
        for act, total in zip([*acts, self._ones()], sums, strict=True):
            total.set(self._dot(total.get(), act, weight))

    def _centred(
        self, n: Value, sums: list[Value], totals: list[Value], weights: Value
    ) -> list[Value]:
        """Correct sums for zero points; ``weights`` are the sums of the columns' weights."""
        e, b, task = self.e, self.b, self.task
        words = ir.VectorType(I32, _COLUMNS)
        move = 0 if not self.moves else 128 if self.signed else -128
        p = e.splat(b.trunc(b.add(task[Word.ACT_ZERO], I64(move)), I32), _COLUMNS)
        q: Value = e.splat(I32(0), _COLUMNS)
        if self.problem.zero is not DType.UNSET:
            place = e.at(self.zeros, b.mul(n, I64(4)))
            q = b.fptosi(e.load(place, F32, _COLUMNS), words)
        k = e.splat(b.trunc(task[Word.K], I32), _COLUMNS)
        every = b.mul(p, b.sub(b.mul(q, k), weights))
        return [
            b.add(one, b.sub(every, b.mul(q, e.splat(total, _COLUMNS))))
            for one, total in zip(sums, totals, strict=True)
        ]

    def _act(self, row: int, k: Value) -> Value:
        offset = self.b.add(self.b.mul(self.padded, I64(row)), k)
        return self.e.load(self.e.at(self.acts, offset), I8, _VECTOR)

    def _ones(self) -> Value:
        return self.e.splat(I8(1), _VECTOR)

    def _nothing(self) -> Value:
        return self.e.splat(I32(0), self.e.lanes)

    def _dot(self, total: Value, act: Value, weight: Value) -> Value:
        """Add dot products of byte quadruples; the u8 operand comes first."""
        pair = (act, weight) if self.signed else (weight, act)
        words = ir.VectorType(I32, self.e.lanes)
        first, second = (self.b.bitcast(one, words) for one in pair)
        return dot(self.e, NumberFormat.BYTES, total, first, second)
