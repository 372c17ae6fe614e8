"""Matmuls of one row of floats with groups of 4-bit weights, by byte dot products.

128 activations, or those of a group if it is longer, share a unit, and become fixed-point numbers
of three signed bytes (``fixed_point``). A vector holds 128 weights: the lower halves of its bytes
are those of even k, the upper halves those of odd k, and digits are stored in the same order. A
lane sums the products of 8 weights and of all three digits, which fits into i32, before it is
converted to f32 and scaled. A column's zero points contribute a sum over groups, 16 groups to a
vector, with which its sums begin. ``lookups``, in the same kernel, computes rows that do not suit
fixed point.
"""

from __future__ import annotations

from functools import partial

from llvmlite import ir

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu import lookups
from driver_layer.engines.native.dpu.finish import SumTile, TaskRange
from driver_layer.engines.native.dpu.fixed_point import FixedRow
from driver_layer.engines.native.dpu.flavours import NumberFormat, dot
from driver_layer.engines.native.dpu.problem import (
    FLOATS,
    NIBBLES,
    MatmulKernel,
    MatmulProblem,
    WeightLayout,
)
from driver_layer.engines.native.dpu.rows import Row, load_some, widen_row
from driver_layer.engines.native.dpu.sums import sums_of
from driver_layer.engines.native.dpu.words import TABLE_STRIDES, Word
from driver_layer.engines.native.dpu.writer import KernelWriter
from driver_layer.engines.native.jit.emitter import F32, I8, I16, I32, I64, Emitter, Value, Variable
from driver_layer.engines.native.jit.host import Host

_LANES = 16
_VECTOR = 64
"""Bytes of a vector."""

_CHUNK = 2 * _VECTOR
"""Weights in a vector."""

_DIGITS = 3

_GROUPS = (32, 64, _CHUNK)
"""Supported group sizes, and multiples of the last (see ``MatmulProblem.group``)."""

_BLOCK = 16
"""Columns that share one pass over tables, and one over the lanes of their sums."""

_COLUMNS = 2
"""Columns at a time."""


def choose(problem: MatmulProblem, host: Host) -> MatmulKernel | None:
    """Return the kernel, if it can compute the problem."""
    if not host.dots_bytes or problem.rows > 1 or problem.layout is not WeightLayout.K:
        return None
    if problem.act not in FLOATS or problem.weight not in NIBBLES:
        return None
    if problem.group not in _GROUPS:
        return None
    return MatmulKernel(_NibbleDigits.spec(problem), partial(_scratch, problem))


def _scratch(problem: MatmulProblem, m: int, n: int, k: int) -> int:
    padded = k + _CHUNK
    groups = padded // problem.group + 2 * _LANES
    acts = (_DIGITS + 4) * padded + _VECTOR * _BLOCK
    tables = 4 * groups * (2 + 4 * _BLOCK)
    ours = acts + tables + 4 * (n + _BLOCK) + 8 * _VECTOR
    return max(ours, lookups.scratch(problem, m, n, k))


def _moved(problem: MatmulProblem) -> float | None:
    """Return the offset to add to stored weights, without zero points; None to add nothing."""
    if problem.weight is DType.I4:
        return -8.0
    return None if problem.zero is DType.UNSET else 0.0


class _NibbleDigits(KernelWriter):
    """Writer of one kernel."""

    family = "nibble_digits"

    def __init__(self, problem: MatmulProblem, e: Emitter) -> None:
        super().__init__(problem, e)
        task, b = self.task, self.b
        self.per_unit = max(1, _CHUNK // problem.group)
        """Number of groups that share a unit."""
        self.moved = _moved(problem)
        self.ahead = task.ahead_by_halves(_COLUMNS)
        self.padded = task.rounded(task[Word.K], _CHUNK)
        self.groups = task.parts(task[Word.K], task[Word.GROUP])
        self.group_bytes = b.mul(task.rounded(b.add(self.groups, I64(_LANES)), _LANES), I64(4))
        """Bytes of a row of a table, with what is read beyond its last entry."""
        # All places in scratch are aligned to vectors.
        self.digits = self.reserve(self.padded, _DIGITS)
        self.plain = self.reserve(self.padded, 4)
        self.group_sums = self.reserve(self.group_bytes)
        """Sums of each group's activations, f32, which zero points are multiplied by."""
        self.units = self.reserve(self.group_bytes)
        self.factors = self.reserve(self.group_bytes, _BLOCK)
        """Scales times units, by column of a block."""
        self.taken = self.reserve(self.group_bytes, _BLOCK)
        """Factors times the offset to add to stored weights."""
        self.scales = self.reserve(self.group_bytes, _BLOCK)
        self.zeros = self.reserve(self.group_bytes, _BLOCK)
        self.totals = self.reserve(I64(_VECTOR * _BLOCK))
        self.sums = self.reserve(I64(0))
        self.floats = lookups.Lookups(problem, e)

    def write_batch(self, batch: Value) -> None:
        """Write the code for one batch entry."""
        b, task, group = self.b, self.task, self.problem.group
        usable = self._take_activations(batch)
        if group != _CHUNK:  # the problem's group divides the group size, and may be smaller
            usable = b.and_(usable, b.icmp_signed("==", task[Word.GROUP], I64(group)))
        with b.if_else(usable, likely=True) as (fixed, floating):
            with fixed:
                self._multiply_all(batch)
            with floating:
                self.floats.write_batch(batch)

    def _multiply_all(self, batch: Value) -> None:
        e, b, task = self.e, self.b, self.task
        with e.loop(0, task[Word.N], _BLOCK) as n:
            block = TaskRange(n, task.least(I64(_BLOCK), b.sub(task[Word.N], n)))
            self._take_tables(block)
            with e.loop(0, block.count, _COLUMNS) as first:
                self._sum_columns(batch, block, first)
            self._add_lanes(n)
        self.finish_all(batch, SumTile(self.sums, I64(0)))

    # Conversion of activations and tables

    def _take_activations(self, batch: Value) -> Value:
        """Convert the row to digits in scratch; return whether it suits fixed point."""
        e, b, task = self.e, self.b, self.task
        source = task.address(Word.ACT, (batch, Word.ACT_B))
        taken = Row(self.problem.act, source, task[Word.ACT_K], task[Word.K])
        widen_row(e, taken, self.plain, self.padded)
        fixed = FixedRow(e, self.plain, _DIGITS, _CHUNK)
        span = I64(_CHUNK) if self.per_unit > 1 else task[Word.GROUP]
        group = e.variable(I64(0))
        with e.loop(0, self.group_bytes, _VECTOR) as at:
            e.store(e.zero(_LANES), e.at(self.group_sums, at))
        with e.loop(0, self.padded, span) as begin:
            end = task.least(b.add(begin, span), self.padded)
            sums = e.variable(e.zero(_LANES))
            unit = e.splat(fixed.round(begin, end, partial(self._store, sums)), self.per_unit)
            at = b.mul(group.get(), I64(4))
            e.store(unit, e.at(self.units, at))
            self._store_sums(sums.get(), e.at(self.group_sums, at))
            group.set(b.add(group.get(), I64(self.per_unit)))
        return fixed.usable()

    def _store_sums(self, lanes: Value, target: Value) -> None:
        """Write the sums of the groups that lanes belong to."""
        e, each = self.e, _LANES // self.per_unit
        for number in range(self.per_unit):
            own = e.lanes_of(lanes, lanes, range(each * number, each * (number + 1)))
            e.store(e.reduce(own, e.b.fadd), e.at(target, 4 * number))

    def _store(self, sums: Variable, k: Value, digits: list[Value]) -> None:
        """Write the digits of a chunk, the highest first; for each, even k before odd k."""
        e, b = self.e, self.b
        chunk = e.at(self.digits, b.mul(k, I64(_DIGITS)))
        for number, digit in enumerate(reversed(digits)):
            pairs = b.bitcast(digit, ir.VectorType(I16, _VECTOR))
            odd = b.lshr(pairs, e.splat(I16(8), _VECTOR))
            for half, values in enumerate((pairs, odd)):
                place = e.at(chunk, _VECTOR * (2 * number + half))
                e.store(b.trunc(values, ir.VectorType(I8, _VECTOR)), place)
        ones = e.splat(I8(1), _VECTOR)
        total = b.sitofp(self._products((ones, ones), k), ir.VectorType(F32, _LANES))
        sums.set(b.fadd(sums.get(), total))

    def _take_tables(self, block: TaskRange) -> None:
        """Convert scales times units, and their products with offsets, to scratch.

        Entries beyond the last group, which are read for missing weights, are 0.
        """
        e, b = self.e, self.b
        self._fetch_tables(block)
        nothing, groups = e.zero(_LANES), b.mul(self.groups, I64(4))
        self.take_tables(self.groups, self.scales, self.zeros, block)
        with e.loop(0, block.count) as column:
            with e.loop(0, groups, _VECTOR) as at:
                first = b.add(b.mul(column, groups), at)
                factors = e.load(e.at(self.units, at), F32, _LANES)
                if self.problem.scale is not DType.UNSET:
                    factors = b.fmul(factors, e.load(e.at(self.scales, first), F32, _LANES))
                e.store(factors, e.at(self._of_column(self.factors, column), at))
                if self.moved is not None:
                    taken = b.fmul(factors, self._taken(first))
                    e.store(taken, e.at(self._of_column(self.taken, column), at))
            e.store(nothing, e.at(self._of_column(self.factors, column), groups))
            if self.moved is not None:
                e.store(nothing, e.at(self._of_column(self.taken, column), groups))

    def _taken(self, at: Value) -> Value:
        """Return the offsets to add to the stored weights of 16 groups."""
        e, b = self.e, self.b
        moved = e.constant(self.moved or 0.0, _LANES)
        if self.problem.zero is DType.UNSET:
            return moved
        return b.fsub(moved, e.load(e.at(self.zeros, at), F32, _LANES))

    def _fetch_tables(self, block: TaskRange) -> None:
        """Prefetch the tables of the next block, which are read together before its weights."""
        e, b, task = self.e, self.b, self.task
        for table, (along_n, along_k) in TABLE_STRIDES.items():
            if task.kind(table) is not DType.UNSET:
                first = task.address(table, (b.add(block.begin, I64(_BLOCK)), along_n))
                row = b.mul(self.groups, task[along_k])
                dense = b.icmp_signed("==", task[along_n], row)
                count = b.select(dense, b.mul(row, I64(_BLOCK)), I64(0))
                with e.loop(0, count, _VECTOR) as at:
                    e.prefetch(e.at(first, at))

    # Sums of columns

    def _sum_columns(self, batch: Value, block: TaskRange, first: Value) -> None:
        """Write vectors of sums of some columns of a block."""
        e, b, task = self.e, self.b, self.task
        columns = self.columns_from(first, _COLUMNS, block.count)
        weights = self.weights_of(batch, [b.add(block.begin, column) for column in columns])
        totals = [e.variable(e.zero(_LANES)) for _ in columns]
        if self.moved is not None:
            self._begin_sums(columns, totals)
        whole = b.and_(task[Word.K], I64(-_CHUNK))

        def add_chunk(k: Value, group: Value) -> None:
            for column, weight in enumerate(weights):
                place = e.at(weight, b.lshr(k, I64(1)))
                e.prefetch(e.at(place, self.ahead))
                vector = e.load(place, I8, _VECTOR)
                self._add(vector, columns[column], k, group, totals[column])

        # For groups no longer than a chunk, one loop is enough.
        short = b.icmp_signed("==", task[Word.GROUP], I64(self.problem.group))
        with b.if_else(short, likely=True) as (one_loop, two_loops):
            with one_loop, e.loop(0, whole, _CHUNK) as k:
                add_chunk(k, b.udiv(k, I64(self.problem.group)))
            with two_loops, e.loop(0, self.groups) as group:
                begin = b.mul(group, task[Word.GROUP])
                end = task.least(b.add(begin, task[Word.GROUP]), whole)
                with e.loop(begin, end, _CHUNK) as k:
                    add_chunk(k, group)
        left = b.sub(task[Word.K], whole)
        with b.if_then(b.icmp_signed(">", left, I64(0)), likely=False):
            count = b.lshr(b.add(left, I64(1)), I64(1))
            at = b.udiv(whole, task[Word.GROUP])
            # Beyond k, digits are 0, so that other bytes do not count.
            for column, weight in enumerate(weights):
                vector = load_some(e, e.at(weight, b.lshr(whole, I64(1))), count)
                self._add(vector, columns[column], whole, at, totals[column])
        target = e.at(self.totals, b.mul(first, I64(_VECTOR)))
        for column, total in enumerate(totals):
            e.store(total.get(), e.at(target, _VECTOR * column))

    def _begin_sums(self, columns: list[Value], totals: list[Variable]) -> None:
        """Initialize columns' sums with the contribution of zero points, 16 groups at a time."""
        e, b = self.e, self.b
        with e.loop(0, b.mul(self.groups, I64(4)), _VECTOR) as at:
            sums = e.load(e.at(self.group_sums, at), F32, _LANES)
            for column, total in zip(columns, totals, strict=True):
                taken = e.load(e.at(self._of_column(self.taken, column), at), F32, _LANES)
                total.set(e.fma(taken, sums, total.get()))

    def _add(self, packed: Value, column: Value, k: Value, group: Value, total: Variable) -> None:
        """Add the products of a vector of a column's weights, whose first group is ``group``."""
        e, b = self.e, self.b
        value = b.sitofp(self._products(self._halves(packed), k), ir.VectorType(F32, _LANES))
        place = e.at(self._of_column(self.factors, column), b.mul(group, I64(4)))
        total.set(e.fma(value, self._spread(place), total.get()))

    def _halves(self, packed: Value) -> tuple[Value, Value]:
        """Return weights of even and of odd k, as u8; i4 are increased by 8."""
        e, b = self.e, self.b
        pairs = ir.VectorType(I16, _VECTOR // 2)
        shifted = b.lshr(b.bitcast(packed, pairs), e.splat(I16(4), _VECTOR // 2))
        mask = e.splat(I8(15), _VECTOR)
        halves = b.and_(packed, mask), b.and_(b.bitcast(shifted, packed.type), mask)
        if self.problem.weight is not DType.I4:
            return halves
        eight = e.splat(I8(8), _VECTOR)
        return b.xor(halves[0], eight), b.xor(halves[1], eight)

    def _spread(self, place: Value) -> Value:
        """Return the numbers of a chunk's groups, each in the lanes of its weights."""
        e = self.e
        if self.per_unit == 1:
            return e.splat(e.load(place, F32), _LANES)
        numbers = [lane * self.per_unit // _LANES for lane in range(_LANES)]
        loaded = e.load(place, F32, _LANES)
        return e.lanes_of(loaded, ir.Constant(loaded.type, ir.Undefined), numbers)

    def _products(self, halves: tuple[Value, Value], k: Value) -> Value:
        """Return the sums of a chunk's products, as i32, each lane in its own unit."""
        e, b = self.e, self.b
        words = ir.VectorType(I32, _LANES)
        chunk = e.at(self.digits, b.mul(k, I64(_DIGITS)))
        total: Value = e.splat(I32(0), _LANES)
        for number in range(_DIGITS):
            if number:
                total = b.shl(total, e.splat(I32(8), _LANES))
            for half, weights in enumerate(halves):
                digits = e.load(e.at(chunk, _VECTOR * (2 * number + half)), I32, _LANES)
                total = dot(e, NumberFormat.BYTES, total, b.bitcast(weights, words), digits)
        return total

    def _add_lanes(self, n: Value) -> None:
        """Write the sums of the block that begins at n; undefined beyond the last column."""
        e = self.e
        totals = [e.load(e.at(self.totals, _VECTOR * i), F32, _LANES) for i in range(_BLOCK)]
        e.store(sums_of(e, totals), e.at(self.sums, self.b.mul(n, I64(4))))

    # Places in scratch

    def _of_column(self, table: Value, column: Value) -> Value:
        return self.e.at(table, self.b.mul(self.group_bytes, column))
