"""Matmuls of few rows of floats with integers along k, by byte dot products.

Activations become digits once per task (``digit_rows``). The weights of 16 columns and a range of k
are transposed: a vector holds 4 weights of each column, as u8, and is multiplied with broadcast
digits of all rows. So a weight is unpacked once, and lanes need not be added: a block's i32 sums,
which are exact, are scaled and added to f32 sums. The weights of the next columns are prefetched in
the meantime. ``lookups`` or ``gemv``, in the same kernel, computes rows that do not suit fixed
point.
"""

from __future__ import annotations

from functools import partial, reduce
from itertools import chain
from math import prod
from types import ModuleType

from llvmlite import ir

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu import gemv, lookups
from driver_layer.engines.native.dpu.digit_rows import (
    BLOCK,
    DIGITS,
    LANES,
    ROWS,
    VECTOR,
    Block,
    DigitRows,
    acts_scratch,
)
from driver_layer.engines.native.dpu.finish import SumTile, TaskRange
from driver_layer.engines.native.dpu.flavours import NumberFormat, dot
from driver_layer.engines.native.dpu.pack import turned
from driver_layer.engines.native.dpu.problem import (
    BYTES,
    EXACT_ROWS,
    FLOATS,
    NIBBLES,
    MatmulKernel,
    MatmulProblem,
    WeightLayout,
)
from driver_layer.engines.native.dpu.rows import load_some
from driver_layer.engines.native.dpu.tables import take_table
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.jit.emitter import F32, I32, I64, Emitter, Value, Variable
from driver_layer.engines.native.jit.host import Host

LEAST_ROWS = 5
"""Minimum rows: up to 4, the floats of a pass take no longer."""

_UNROLL = 4
"""Vectors of weights that are multiplied at a time."""

_COLUMNS = 768
"""Columns of a merged call, for which activations are converted once."""

_SHORTEST = 64
"""Minimum size of a group: for smaller ones, sums are scaled too often."""


def choose(problem: MatmulProblem, host: Host) -> MatmulKernel | None:
    """Return the kernel, if it can compute the problem."""
    if not host.dots_bytes or problem.rows < LEAST_ROWS or problem.rows > EXACT_ROWS:
        return None
    if problem.layout is not WeightLayout.K or problem.act not in FLOATS:
        return None
    if problem.weight not in BYTES | NIBBLES or 0 < problem.group < _SHORTEST:
        return None
    if problem.common_scales:
        return None
    return MatmulKernel(_Squares.spec(problem), partial(_scratch, problem), columns=_COLUMNS)


def _scratch(problem: MatmulProblem, m: int, n: int, k: int) -> int:
    groups = -(-k // problem.group) if problem.group else 1
    tables = 4 * VECTOR * (groups + LANES)
    sums = 4 * prod(problem.passes(ROWS)) * (n + LANES)
    ours = acts_scratch(problem, k) + tables + sums + LANES * BLOCK
    return max(ours, _floats(problem).scratch(problem, m, n, k))


def _floats(problem: MatmulProblem) -> ModuleType:
    """Return the family that computes rows that do not suit fixed point."""
    return lookups if problem.weight in NIBBLES else gemv


_Weights = tuple[Value, Value]
"""Addresses of a block's packed vectors, and of the weights of the next columns."""


class _Squares(DigitRows):
    """Writer of one kernel."""

    family = "squares"

    def __init__(self, problem: MatmulProblem, e: Emitter) -> None:
        super().__init__(problem, e)
        task, b = self.task, self.b
        signed = problem.weight in (DType.I8, DType.I4)
        self.offset = (8 if self.nibbles else 128) if signed else 0
        """Offset of packed weights."""
        self.moved = signed or problem.zero is not DType.UNSET
        self.groups = task.parts(task[Word.K], task[Word.GROUP]) if problem.group else I64(1)
        longest = b.sub(I64(BLOCK), b.urem(I64(BLOCK), self.size))
        self.span = longest if problem.group else self.size
        """Size of the range of k that is packed at a time."""
        self.pitch = b.mul(task.rounded(task[Word.N], LANES), I64(4))
        self.packed = self.reserve(I64(LANES * BLOCK))
        table = task.rounded(self.groups, LANES)
        self.scales, self.zeros = self.reserve(table, VECTOR), self.reserve(table, VECTOR)
        """Tables of a vector of columns, by group."""
        self.by_column = self.reserve(table, VECTOR)
        """A table by column."""
        self.sums = self.reserve(self.pitch, self.rows)
        floats = lookups.Lookups if problem.weight in NIBBLES else gemv.Gemv
        self.floats = floats(problem, e)

    def write_batch(self, batch: Value) -> None:
        """Write the code for one batch entry."""
        with self.e.loop(0, self.b.lshr(self.task[Word.K], I64(2)), _UNROLL) as unit:
            self._prefetch(self._weights(batch, I64(0)), unit)
        usable = self.take_activations(batch)
        with self.b.if_else(usable, likely=True) as (fixed, floating):
            with fixed:
                self.interleave()
                if self.moved:
                    self.take_totals()
                self._multiply_all(batch)
            with floating:
                self.floats.write_batch(batch)

    # Sums of columns

    def _multiply_all(self, batch: Value) -> None:
        e, b, task = self.e, self.b, self.task
        with e.loop(0, b.mul(self.pitch, I64(self.rows)), VECTOR) as at:
            e.store(e.zero(LANES), e.at(self.sums, at))
        with e.loop(0, task[Word.N], LANES) as n:
            self._take_tables(n)
            following = self._weights(batch, b.add(n, I64(LANES)))
            with e.loop(0, task[Word.K], self.span) as k:
                count = task.least(b.sub(task[Word.K], k), self.span)
                self._pack(batch, n, TaskRange(k, count))
                with self.blocks(k, b.add(k, count)) as block, e.loop(0, self.passes) as turn:
                    packed = e.at(self.packed, b.mul(b.sub(block.begin, k), I64(LANES)))
                    self._add(block, turn, n, (packed, following))
        self.finish_all(batch, SumTile(self.sums, self.pitch))

    def _weights(self, batch: Value, n: Value) -> Value:
        """Return the address of a column's weights."""
        return self.task.address(Word.WEIGHT, (batch, Word.WEIGHT_B), (n, Word.WEIGHT_N))

    def _bytes(self, count: Value) -> Value:
        """Return the bytes of some weights of a column."""
        return self.b.lshr(self.b.add(count, I64(1)), I64(1)) if self.nibbles else count

    def _pack(self, batch: Value, n: Value, span: TaskRange) -> None:
        """Transpose weights of 16 columns, for a range of k.

        Beyond k, digits are 0, so that other weights do not count.
        """
        e, b = self.e, self.b
        columns = self.columns_from(n, LANES, self.task[Word.N])
        first, size = self._bytes(span.begin), self._bytes(span.count)
        weights = [e.at(weight, first) for weight in self.weights_of(batch, columns)]
        words = ir.VectorType(I32, LANES)
        with e.loop(0, size, VECTOR) as at:
            left = b.sub(size, at)
            rows = [b.bitcast(load_some(e, e.at(weight, at), left), words) for weight in weights]
            units = [unit for word in turned(e, rows) for unit in self._unsigned(word)]
            target = e.at(self.packed, b.mul(at, I64(len(units))))
            for number, unit in enumerate(units):
                e.store(unit, e.at(target, VECTOR * number))

    def _unsigned(self, word: Value) -> list[Value]:
        """Return a vector's weights as u8; of 4-bit weights, even k before odd k."""
        e, b = self.e, self.b
        if not self.nibbles:
            return [b.xor(word, e.whole(-0x7F7F7F80, LANES))] if self.offset else [word]
        word = b.xor(word, e.whole(-0x77777778, LANES)) if self.offset else word
        halves = word, b.lshr(word, e.whole(4, LANES))
        return [b.and_(half, e.whole(0x0F0F0F0F, LANES)) for half in halves]

    def _take_tables(self, n: Value) -> None:
        """Convert the scales and zero points of 16 columns to vectors of columns, by group."""
        b, task = self.b, self.task
        columns = TaskRange(n, task.least(I64(LANES), b.sub(task[Word.N], n)))
        for table, target in ((Word.SCALE, self.scales), (Word.ZERO, self.zeros)):
            if not self.problem.group:
                take_table(task, table, self.groups, target, columns)
            elif task.kind(table) is not DType.UNSET:
                take_table(task, table, self.groups, self.by_column, columns)
                self._turn_table(target)

    def _turn_table(self, target: Value) -> None:
        e, b = self.e, self.b
        with e.loop(0, self.groups, LANES) as group:
            places = [b.add(b.mul(self.groups, I64(i)), group) for i in range(LANES)]
            rows = [e.load(e.at(self.by_column, b.mul(at, I64(4))), F32, LANES) for at in places]
            first = e.at(target, b.mul(group, I64(VECTOR)))
            for i, numbers in enumerate(turned(e, rows)):
                e.store(numbers, e.at(first, VECTOR * i))

    def _add(self, block: Block, turn: Value, n: Value, weights: _Weights) -> None:
        """Add the products of packed weights and some rows to the sums of columns."""
        e, b, task = self.e, self.b, self.task
        group = b.udiv(block.begin, task[Word.GROUP]) if self.problem.group else I64(0)
        zero, scale = self._numbers(group)
        row = b.mul(turn, I64(self.rows_at_once))
        units = self.units(block, row)
        target = e.at(self.sums, b.add(b.mul(row, self.pitch), b.mul(n, I64(4))))
        totals = self.totals(block, turn)
        for i, sums in enumerate(self._products(block, turn, weights)):
            place = e.at(target, b.mul(self.pitch, I64(i)))
            value = self._joined(sums, zero, e.at(totals, 4 * DIGITS * i))
            factor = e.splat(e.load(e.at(units, 4 * i), F32), LANES)
            factor = factor if scale is None else b.fmul(factor, scale)
            e.store(e.fma(value, factor, e.load(place, F32, LANES)), place)

    def _numbers(self, group: Value) -> tuple[Value | None, Value | None]:
        """Return the zero points of packed weights, and the scales; None for 0 and for 1."""
        e, at = self.e, self.b.mul(group, I64(VECTOR))
        unscaled, centred = (self.task.kind(t) is DType.UNSET for t in (Word.SCALE, Word.ZERO))
        scale = None if unscaled else e.load(e.at(self.scales, at), F32, LANES)
        if not self.moved:
            return None, scale
        zero = e.constant(float(self.offset), LANES)
        if not centred:
            zero = self.b.fadd(zero, e.load(e.at(self.zeros, at), F32, LANES))
        return zero, scale

    def _products(self, block: Block, turn: Value, weights: _Weights) -> list[list[Variable]]:
        """Return vectors of the sums of each row, by digit; prefetch the following weights."""
        e, b = self.e, self.b
        sums = [
            [e.variable(e.whole(0, LANES)) for _ in range(DIGITS)] for _ in range(self.rows_at_once)
        ]
        digits, (packed, following) = self.digits(turn, block.begin), weights
        first = b.lshr(block.begin, I64(2))
        with e.loop(0, self.vectors_of(block), _UNROLL) as unit:
            vectors = e.at(packed, b.mul(unit, I64(VECTOR)))
            place = e.at(digits, b.mul(unit, I64(self.unit_bytes)))
            self._prefetch(following, b.add(first, unit))
            for i in range(_UNROLL):
                weight = e.load(e.at(vectors, VECTOR * i), I32, LANES)
                for number, total in enumerate(chain.from_iterable(sums)):
                    digit = e.load(e.at(place, self.unit_bytes * i + 4 * number), I32)
                    every = e.splat(digit, LANES)
                    total.set(dot(e, NumberFormat.BYTES, total.get(), weight, every))
        return sums

    def _prefetch(self, weights: Value, unit: Value) -> None:
        """Prefetch the lines of 16 columns that become some of their packed vectors."""
        e, b, task = self.e, self.b, self.task
        per_line = 2 if self.nibbles else 1
        line = b.udiv(unit, I64(per_line))
        column = b.urem(line, I64(LANES))
        along = b.mul(b.udiv(line, I64(LANES)), I64(VECTOR))
        first = e.at(weights, b.add(along, b.mul(column, task[Word.WEIGHT_N])))
        for i in range(_UNROLL // per_line):
            e.prefetch(e.at(first, b.mul(task[Word.WEIGHT_N], I64(i))), near=False)

    def _joined(self, sums: list[Variable], zero: Value | None, totals: Value) -> Value:
        """Combine the sums of all digits, less the contribution of the weights' zero points."""
        e, kind = self.e, ir.VectorType(F32, LANES)
        parts = [self.b.sitofp(total.get(), kind) for total in sums]
        if zero is not None:
            for number, part in enumerate(parts):
                taken = e.splat(e.load(e.at(totals, 4 * number), F32), LANES)
                parts[number] = e.fma(zero, taken, part)
        base = e.constant(256.0, LANES)
        return reduce(lambda high, low: e.fma(high, base, low), reversed(parts))
