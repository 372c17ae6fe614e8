"""Matmuls of few rows with 4-bit weights along k, by look-ups of f32.

A vector of 16 lanes is the index of a look-up (``vpermps``) in the 16 values of a group's weights,
``(stored - zero) * scale``. An index uses its 4 lowest bits, so that only shifts are needed between
memory and look-ups. A lane holds 8 weights, or 4 or 2 if groups are too short; activations, as f32,
are reordered as right shifts of the lanes yield the weights.

Few columns are summed together, as memory is fastest when read in few streams. Tables are
converted, and lanes of sums added, for a block of columns at a time: both stay in the first-level
cache.
"""

from __future__ import annotations

from functools import partial, reduce
from math import prod

from llvmlite import ir

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu.finish import SumTile, TaskRange
from driver_layer.engines.native.dpu.problem import (
    EXACT_ROWS,
    FLOATS,
    NIBBLES,
    MatmulKernel,
    MatmulProblem,
    WeightLayout,
)
from driver_layer.engines.native.dpu.rows import copy_bytes, widen_row
from driver_layer.engines.native.dpu.sums import sums_of
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.dpu.writer import KernelWriter
from driver_layer.engines.native.jit.emitter import F32, I8, I16, I32, I64, Emitter, Value, Variable
from driver_layer.engines.native.jit.host import Host, Isa

_LANES = 16
"""f32 lanes of a vector, and number of values of 4 bits."""

_VECTOR = 64
"""Bytes of a vector."""

_STEP = 128
"""Rows in scratch are padded to a multiple of this many f32; no chunk is longer."""

_BLOCK = 16
"""Columns that share one pass over tables, and one over the lanes of their sums."""

_ROWS = 4
"""Maximum of rows at a time: more activations would leave the first-level cache before the next
columns. Further rows find a block's weights in a cache."""

_COLUMNS = {1: 2, 2: 4, 3: 4, 4: 4}
"""Columns at a time, by rows at a time: more than 16 sums leave too few registers."""

_SUMS = {1: 2, 2: 1, 3: 1, 4: 1}
"""Sums of a column, by rows at a time: four independent ones occupy both multipliers."""

_UNITS = {2: I8, 4: I16, 8: I32}
"""Integer type that holds a number of weights."""


def choose(problem: MatmulProblem, host: Host) -> MatmulKernel | None:
    """Return the kernel, if it can compute the problem."""
    if host.isa < Isa.AVX512 or problem.rows > EXACT_ROWS or problem.layout is not WeightLayout.K:
        return None
    if problem.act not in FLOATS or problem.weight not in NIBBLES:
        return None
    if problem.nibbles_in_lane(_LANES) == 0:
        return None
    return MatmulKernel(Lookups.spec(problem), partial(scratch, problem))


def scratch(problem: MatmulProblem, m: int, n: int, k: int) -> int:
    """Return the bytes of scratch for given sizes."""
    rows = prod(problem.passes(_ROWS))
    groups = -(-k // problem.group) if problem.group else 1
    acts, totals = 4 * (rows + 1) * (k + _STEP), _VECTOR * rows * _BLOCK
    return acts + totals + 4 * rows * (n + _BLOCK) + 8 * _BLOCK * groups + _VECTOR


_Sums = list[Variable]
"""Vectors whose lanes add up to the sum of a row with a column."""


class Lookups(KernelWriter):
    """Writer of one kernel."""

    family = "lookups"

    def __init__(self, problem: MatmulProblem, e: Emitter) -> None:
        super().__init__(problem, e)
        task = self.task
        passes, self.rows_at_once = problem.passes(_ROWS)
        self.rows = passes * self.rows_at_once
        self.columns = _COLUMNS[self.rows_at_once]
        self.parts = problem.nibbles_in_lane(_LANES)
        self.chunk = self.parts * _LANES
        self.buffer = e.room(_VECTOR)
        self.ahead = task.ahead_by_halves(self.columns)
        self.groups = task.parts(task[Word.K], task[Word.GROUP]) if problem.group else I64(1)
        self.row_bytes = e.b.mul(task.rounded(task[Word.K], _STEP), I64(4))
        self.pitch = e.b.mul(task.rounded(task[Word.N], _BLOCK), I64(4))
        self.acts = self.all_acts = self.reserve(self.row_bytes, self.rows)
        """Activations of the current rows, and of all."""
        self.plain = self.reserve(self.row_bytes)
        self.totals = self.reserve(I64(_VECTOR * self.rows * _BLOCK))
        self.sums = self.reserve(self.pitch, self.rows)
        self.scales = self.reserve(self.groups, 4 * _BLOCK)
        self.zeros = self.reserve(self.groups, 4 * _BLOCK)

    def write_batch(self, batch: Value) -> None:
        """Write the code for one batch entry."""
        e, b, task = self.e, self.b, self.task
        self._take_activations(batch)
        with e.loop(0, task[Word.N], _BLOCK) as n:
            block = TaskRange(n, task.least(I64(_BLOCK), b.sub(task[Word.N], n)))
            self.take_tables(self.groups, self.scales, self.zeros, block)
            self._sum_columns(batch, block)
            self._add_lanes(n)
        self.finish_all(batch, SumTile(self.sums, self.pitch))

    # Conversion of activations

    def _take_activations(self, batch: Value) -> None:
        """Convert rows to f32 in scratch; missing rows, and elements beyond k, are zeros."""
        e, b = self.e, self.b
        padded = b.lshr(self.row_bytes, I64(2))
        with e.loop(0, self.rows) as row:
            widen_row(e, self.act_row(batch, row), self.plain, padded)
            beside = b.urem(row, I64(self.rows_at_once))
            first = b.mul(b.sub(row, beside), self.row_bytes)
            self._reorder(e.at(self.all_acts, b.add(first, b.mul(beside, I64(_VECTOR)))))

    def _reorder(self, target: Value) -> None:
        """Reorder a row's chunks as shifts of lanes yield the weights.

        Each part is next to the same part of the rows that are multiplied together. The first part
        of the first chunk is stored at the target.
        """
        e, b = self.e, self.b
        with e.loop(0, self.row_bytes, 4 * self.chunk) as offset:
            values = e.load(e.at(self.plain, offset), F32, self.chunk)
            nothing = ir.Constant(values.type, ir.Undefined)
            chunk = e.at(target, b.mul(offset, I64(self.rows_at_once)))
            for part in range(self.parts):
                numbers = range(part, self.chunk, self.parts)
                place = e.at(chunk, _VECTOR * self.rows_at_once * part)
                e.store(e.lanes_of(values, nothing, numbers), place)

    # Sums of columns

    def _sum_columns(self, batch: Value, block: TaskRange) -> None:
        """Write vectors of sums of each row with each of a block's columns."""
        e, b = self.e, self.b
        with (
            e.loop(0, self.rows, self.rows_at_once) as row,
            e.loop(0, block.count, self.columns) as first,
        ):
            self.acts = e.at(self.all_acts, b.mul(row, self.row_bytes))
            places = self.columns_from(first, self.columns, block.count)
            corner = b.add(b.mul(row, I64(_BLOCK)), first)
            target = e.at(self.totals, b.mul(corner, I64(_VECTOR)))
            for below, totals in enumerate(self._totals(batch, block.begin, places)):
                for i, sums in enumerate(totals):
                    total = reduce(b.fadd, [one.get() for one in sums])
                    e.store(total, e.at(target, _VECTOR * (_BLOCK * below + i)))

    def _add_lanes(self, n: Value) -> None:
        """Write the sums of the block that begins at n; undefined beyond the last column."""
        e, b = self.e, self.b
        for row in range(self.rows):
            first = e.at(self.totals, _VECTOR * _BLOCK * row)
            totals = [e.load(e.at(first, _VECTOR * i), F32, _LANES) for i in range(_BLOCK)]
            place = b.add(b.mul(self.pitch, I64(row)), b.mul(n, I64(4)))
            e.store(sums_of(e, totals), e.at(self.sums, place))

    def _totals(self, batch: Value, n: Value, places: list[Value]) -> list[list[_Sums]]:
        """Return sums of each row with the columns at some places of a block, which begins at n.

        Complete chunks come first, then the remainder. Each chunk is within a group.
        """
        e, b, task = self.e, self.b, self.task
        weights = self.weights_of(batch, [b.add(n, place) for place in places])
        numbers = [b.mul(b.mul(place, self.groups), I64(4)) for place in places]
        totals = [[self._nothing() for _ in places] for _ in range(self.rows_at_once)]
        group, end = e.variable(I64(0)), e.variable(task[Word.GROUP])
        whole = b.and_(task[Word.K], I64(-self.chunk))
        with e.loop(0, whole, self.chunk) as k:
            chunks = [e.at(weight, b.lshr(k, I64(1))) for weight in weights]
            for chunk in chunks:
                e.prefetch(e.at(chunk, self.ahead))
            tables = [self._table(b.add(number, group.get())) for number in numbers]
            self._multiply(chunks, tables, k, totals)
            if self.problem.group:
                done = b.icmp_signed(">=", b.add(k, I64(self.chunk)), end.get())
                group.set(b.add(group.get(), b.select(done, I64(4), I64(0))))
                end.set(b.add(end.get(), b.select(done, task[Word.GROUP], I64(0))))
        left = b.sub(task[Word.K], whole)
        with b.if_then(b.icmp_signed(">", left, I64(0)), likely=False):
            count = b.lshr(b.add(left, I64(1)), I64(1))
            for i, (weight, number) in enumerate(zip(weights, numbers, strict=True)):
                source = e.at(weight, b.lshr(whole, I64(1)))
                copy_bytes(e, source, count, self.buffer, (0, _VECTOR))
                table = self._table(b.add(number, group.get()))
                self._multiply([self.buffer], [table], whole, [[row[i]] for row in totals])
        return totals

    def _nothing(self) -> _Sums:
        """Return empty sums of a row with a column."""
        return [self.e.variable(self.e.zero(_LANES)) for _ in range(_SUMS[self.rows_at_once])]

    def _table(self, at: Value) -> Value:
        """Return a group's values of the 16 bit patterns; ``at`` is its offset in the tables."""
        e, b, problem = self.e, self.b, self.problem
        signed = problem.weight is DType.I4
        numbers = [float(x - 16 if signed and x > 7 else x) for x in range(16)]
        table: Value = ir.Constant(ir.VectorType(F32, _LANES), numbers)
        if problem.zero is not DType.UNSET:
            table = b.fsub(table, e.splat(e.load(e.at(self.zeros, at), F32), _LANES))
        if problem.scale is not DType.UNSET:
            table = b.fmul(table, e.splat(e.load(e.at(self.scales, at), F32), _LANES))
        return table

    def _multiply(
        self, places: list[Value], tables: list[Value], k: Value, totals: list[list[_Sums]]
    ) -> None:
        """Add the products of some columns' chunks, which begin at k."""
        e, b = self.e, self.b
        packed = [self._packed(place) for place in places]
        first = e.at(self.acts, b.mul(k, I64(4 * self.rows_at_once)))
        for part in range(self.parts):
            numbers = range(self.rows_at_once * part, self.rows_at_once * (part + 1))
            acts = [e.load(e.at(first, _VECTOR * i), F32, _LANES) for i in numbers]
            for column, table in enumerate(tables):
                weight = self._looked_up(table, packed[column], part)
                for act, row in zip(acts, totals, strict=True):
                    total = row[column][part % len(row[column])]
                    total.set(e.fma(act, weight, total.get()))

    def _packed(self, place: Value) -> Value:
        """Load a chunk of weights, ``parts`` of them in each lane."""
        raw = self.e.load(place, _UNITS[self.parts], _LANES)
        return raw if self.parts == 8 else self.b.zext(raw, ir.VectorType(I32, _LANES))

    def _looked_up(self, table: Value, packed: Value, part: int) -> Value:
        """Look up weight ``part`` of each lane."""
        bits = self.e.splat(I32(4 * part), _LANES)
        index = self.b.lshr(packed, bits) if part else packed
        name = "llvm.x86.avx512.permvar.sf.512"
        return self.e.external(name, table, index, result=ir.VectorType(F32, _LANES))
