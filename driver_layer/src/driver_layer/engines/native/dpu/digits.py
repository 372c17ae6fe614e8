"""Matmuls of few rows of floats with bytes along k, by byte dot products.

Activations become fixed-point numbers of four signed bytes (``fixed_point``), once per task. Their
digits are multiplied with weights as stored in memory, i8 shifted by 128 to u8; sums are exact.
A vector of weights takes four instructions, whereas a conversion to floats takes sixteen: so the
memory bandwidth is the limit. ``gemv``, in the same kernel, computes rows that do not suit fixed
point.
"""

from __future__ import annotations

from functools import partial, reduce

from llvmlite import ir

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu import gemv
from driver_layer.engines.native.dpu.finish import SumTile
from driver_layer.engines.native.dpu.fixed_point import FixedRow
from driver_layer.engines.native.dpu.flavours import NumberFormat, dot
from driver_layer.engines.native.dpu.problem import (
    BYTES,
    FLOATS,
    MatmulKernel,
    MatmulProblem,
    WeightLayout,
)
from driver_layer.engines.native.dpu.rows import load_some, widen_row
from driver_layer.engines.native.dpu.sums import sums_of_rows
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.dpu.writer import KernelWriter
from driver_layer.engines.native.jit.emitter import F32, I1, I8, I32, I64, Emitter, Value, Variable
from driver_layer.engines.native.jit.host import Host

_VECTOR = 64
"""Bytes of a vector, and of a cache line; digits of equal weight are stored in vectors."""

_DIGITS = 4
"""Digits of an integer; all numbers of a row share one unit."""

MOST_ROWS = 2
"""Maximum rows; for more rows, float arithmetic is as fast."""

_COLUMNS = 2
"""Columns at a time; few, as memory is fastest when read in few streams."""

_Sums = list[Variable]
"""Sums of products of a row with a column, by digit: vectors of i32."""


def choose(problem: MatmulProblem, host: Host) -> MatmulKernel | None:
    """Return the kernel, if it can compute the problem."""
    if not host.dots_bytes or problem.rows > MOST_ROWS or problem.layout is not WeightLayout.K:
        return None
    if problem.act not in FLOATS or problem.weight not in BYTES or problem.has_groups:
        return None
    if problem.zero not in BYTES | {DType.UNSET}:
        return None
    return MatmulKernel(_Digits.spec(problem), partial(_scratch, problem))


def _scratch(problem: MatmulProblem, m: int, n: int, k: int) -> int:
    rows, padded = problem.rows, k + _VECTOR
    ours = (_DIGITS * rows + 4) * padded + 4 * (rows + 2) * (n + 16) + _VECTOR * _DIGITS * rows
    return max(ours, gemv.scratch(problem, m, n, k))


class _Digits(KernelWriter):
    """Writer of one kernel."""

    family = "digits"

    def __init__(self, problem: MatmulProblem, e: Emitter) -> None:
        super().__init__(problem, e)
        task, b = self.task, self.b
        self.signed = problem.weight is DType.I8
        self.ahead = task.ahead_by_halves(_COLUMNS)
        self.padded = task.rounded(task[Word.K], _VECTOR)
        self.row_bytes = b.mul(self.padded, I64(_DIGITS))
        self.pitch = b.mul(task.rounded(task[Word.N], 16), I64(4))
        self.acts = self.reserve(self.row_bytes, self.rows)
        self.plain = self.reserve(self.padded, 4)
        self.totals = self.reserve(I64(_VECTOR * _DIGITS * self.rows))
        self.sums = self.reserve(self.pitch, self.rows)
        self.scales, self.zeros = self.reserve(self.pitch), self.reserve(self.pitch)
        self.floats = gemv.Gemv(problem, e)

    def write_batch(self, batch: Value) -> None:
        """Write the code for one batch entry."""
        usable, units = self._take_activations(batch)
        with self.b.if_else(usable, likely=True) as (fixed, floating):
            with fixed:
                self._multiply_all(batch, units)
            with floating:
                self.floats.write_batch(batch)

    def _multiply_all(self, batch: Value, units: list[Value]) -> None:
        e, b, task = self.e, self.b, self.task
        self.take_tables(I64(1), self.scales, self.zeros)
        with e.loop(0, task[Word.N], _COLUMNS) as n:
            for row, (sums, unit) in enumerate(zip(self._block(batch, n), units, strict=True)):
                place = b.add(b.mul(self.pitch, I64(row)), b.mul(n, I64(4)))
                e.store(b.fmul(sums, e.splat(unit, _COLUMNS)), e.at(self.sums, place))
        scaled = self.problem.scale is not DType.UNSET
        self.finish_all(
            batch, SumTile(self.sums, self.pitch, scales=self.scales if scaled else None)
        )

    # Conversion of activations

    def _take_activations(self, batch: Value) -> tuple[Value, list[Value]]:
        """Convert rows to digits in scratch; missing rows are zeros.

        Returns:
            Whether all rows suit fixed point, and the unit of each row's integers.
        """
        e, b = self.e, self.b
        usable: Value = I1(1)
        units: list[Value] = []
        for row in range(self.rows):
            widen_row(e, self.act_row(batch, I64(row)), self.plain, self.padded)
            target = e.at(self.acts, b.mul(self.row_bytes, I64(row)))
            fixed = FixedRow(e, self.plain, _DIGITS, _VECTOR)
            units.append(fixed.round(I64(0), self.padded, partial(self._store, target)))
            usable = b.and_(usable, fixed.usable())
            self._take_totals(row)
        return usable, units

    def _store(self, target: Value, k: Value, digits: list[Value]) -> None:
        place = self.e.at(target, self.b.mul(k, I64(_DIGITS)))
        for number, digit in enumerate(digits):
            self.e.store(digit, self.e.at(place, _VECTOR * number))

    def _take_totals(self, row: int) -> None:
        """Sum each digit of a row, in the lanes in which products are summed."""
        e = self.e
        totals = self._no_sums()
        ones = e.splat(I8(1), _VECTOR)
        with e.loop(0, self.padded, _VECTOR) as k:
            for total, digit in zip(totals, self._digits(row, k), strict=True):
                total.set(self._dot(total.get(), ones, digit))
        for number, total in enumerate(totals):
            e.store(total.get(), e.at(self.totals, _VECTOR * (_DIGITS * row + number)))

    # Sums of a block of columns

    def _block(self, batch: Value, n: Value) -> list[Value]:
        """Return a vector for each row: its sums with the block's columns, in the row's unit."""
        e, b, task = self.e, self.b, self.task
        columns = self.columns_from(n, _COLUMNS, task[Word.N])
        weights = self.weights_of(batch, columns)
        sums = [[self._no_sums() for _ in columns] for _ in range(self.rows)]
        whole = b.and_(task[Word.K], I64(-_VECTOR))
        with e.loop(0, whole, _VECTOR) as k:
            for column, weight in enumerate(weights):
                place = e.at(weight, k)
                e.prefetch(e.at(place, self.ahead))
                self._multiply(e.load(place, I8, _VECTOR), k, [row[column] for row in sums])
        left = b.sub(task[Word.K], whole)
        with b.if_then(b.icmp_signed(">", left, I64(0)), likely=False):
            # Beyond k, digits are 0, so that other bytes do not count.
            for column, weight in enumerate(weights):
                vector = load_some(e, e.at(weight, whole), left)
                self._multiply(vector, whole, [row[column] for row in sums])
        zeros = [self._zero(column) for column in columns]
        joined = [
            [self._joined(row, zero, one) for zero, one in zip(zeros, found, strict=True)]
            for row, found in enumerate(sums)
        ]
        return sums_of_rows(e, joined)

    def _multiply(self, weight: Value, k: Value, sums: list[_Sums]) -> None:
        """Add the products of one vector of a column's weights with each row's digits."""
        e, b = self.e, self.b
        if self.signed:
            weight = b.xor(weight, e.splat(I8(-128), _VECTOR))
        for row, totals in enumerate(sums):
            for total, digit in zip(totals, self._digits(row, k), strict=True):
                total.set(self._dot(total.get(), weight, digit))

    def _zero(self, column: Value) -> Value | None:
        """Return the offset to subtract from a column's weights, an i32; None if it is 0."""
        e, b = self.e, self.b
        moved = I32(128 if self.signed else 0)
        if self.problem.zero is DType.UNSET:
            return moved if self.signed else None
        number = e.load(e.at(self.zeros, b.mul(column, I64(4))), F32)
        return b.add(b.fptosi(number, I32), moved)

    def _joined(self, row: int, zero: Value | None, sums: _Sums) -> Value:
        """Combine the sums of all digits, less the contribution of the weights' offset."""
        e, b, lanes = self.e, self.b, self.e.lanes
        parts: list[Value] = []
        for number, total in enumerate(sums):
            value = total.get()
            if zero is not None:
                place = e.at(self.totals, _VECTOR * (_DIGITS * row + number))
                moved = b.mul(e.splat(zero, lanes), e.load(place, I32, lanes))
                value = b.sub(value, moved)
            parts.append(b.sitofp(value, ir.VectorType(F32, lanes)))
        base = e.constant(256.0, lanes)
        return reduce(lambda high, low: e.fma(high, base, low), reversed(parts))

    def _digits(self, row: int, k: Value) -> list[Value]:
        first = self.b.add(self.b.mul(self.row_bytes, I64(row)), self.b.mul(k, I64(_DIGITS)))
        place = self.e.at(self.acts, first)
        return [self.e.load(self.e.at(place, _VECTOR * i), I8, _VECTOR) for i in range(_DIGITS)]

    def _no_sums(self) -> _Sums:
        return [self.e.variable(self.e.splat(I32(0), self.e.lanes)) for _ in range(_DIGITS)]

    def _dot(self, total: Value, weight: Value, digit: Value) -> Value:
        """Add dot products of byte quadruples."""
        words = ir.VectorType(I32, self.e.lanes)
        unsigned, signed = self.b.bitcast(weight, words), self.b.bitcast(digit, words)
        return dot(self.e, NumberFormat.BYTES, total, unsigned, signed)
