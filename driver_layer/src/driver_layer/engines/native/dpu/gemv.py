"""Matmuls of few rows with weights along k, limited by the memory bandwidth of the weights.

Activations are converted to f32 in scratch, once per task. Several columns are summed together,
each in its own vector, while their weights stream through registers; then the vectors' lanes are
added. Complete chunks of k are read in place; the remainder of a group is copied into a buffer, so
that no byte beyond the operand is read.

For 4-bit weights, a lane holds 2, 4 or 8 of them, contiguous in memory, and activations are
reordered as right shifts of the lanes yield the weights. ``lookups`` is faster, where supported.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from llvmlite import ir

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu.finish import SumTile, TaskRange
from driver_layer.engines.native.dpu.problem import (
    EXACT_ROWS,
    FLOATS,
    NIBBLES,
    SIZES,
    MatmulKernel,
    MatmulProblem,
    WeightLayout,
)
from driver_layer.engines.native.dpu.rows import copy_bytes, widen_row
from driver_layer.engines.native.dpu.sums import sums_of_rows
from driver_layer.engines.native.dpu.tables import dequantised
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.dpu.writer import KernelWriter
from driver_layer.engines.native.jit.emitter import F32, I8, I16, I32, I64, Emitter, Value, Variable
from driver_layer.engines.native.jit.host import Host, Isa
from driver_layer.engines.native.jit.memory_types import load_f32

_LINE = 64
"""Bytes of a cache line, and of a column's weights that are read at a time."""

_STEP = 128
"""Rows in scratch are padded to a multiple of this many f32; no chunk is longer."""

_SUMS = {1: 4, 2: 8, 3: 12, 4: 16}
"""Sums at a time by number of rows, with 32 registers; half as many with 16."""

_ROWS = 4
"""Maximum of rows at a time; further rows find a block's weights in a cache."""


def choose(problem: MatmulProblem, host: Host) -> MatmulKernel | None:
    """Return the kernel, if it can compute the problem."""
    if host.lanes == 1 or problem.rows > EXACT_ROWS:
        return None
    if problem.layout is not WeightLayout.K or problem.act not in FLOATS:
        return None
    if problem.weight in NIBBLES and problem.nibbles_in_lane(host.lanes) == 0:
        return None
    return MatmulKernel(Gemv.spec(problem), partial(scratch, problem))


def scratch(problem: MatmulProblem, m: int, n: int, k: int) -> int:
    """Return the bytes of scratch for given sizes."""
    rows = prod(problem.passes(_ROWS))
    tables = 8 * (n + 8) * (-(-k // problem.group) + 1) if problem.group else 0
    if problem.common_scales:
        tables = 4 * (k + 2 * _STEP)
    return 4 * (rows + 1) * (k + 2 * _STEP) + 4 * rows * (n + _STEP) + tables + 64


def _columns(problem: MatmulProblem, host: Host) -> int:
    """Return the number of columns at a time.

    Rows of wide weights are often complete pages apart: more columns would evict each other from
    the first-level cache. Unpacking 4-bit weights takes long enough for more columns.
    """
    _, rows = problem.passes(_ROWS)
    sums = _SUMS[rows]
    if rows == 1:
        sums = 8 if problem.weight in NIBBLES else sums // min(SIZES[problem.weight], 2)
    few = host.isa < Isa.AVX512
    return max(1, sums // rows // (2 if few and sums > 2 else 1))


class Gemv(KernelWriter):
    """Writer of one kernel."""

    family = "gemv"

    def __init__(self, problem: MatmulProblem, e: Emitter) -> None:
        super().__init__(problem, e)
        task = self.task
        passes, self.rows_at_once = problem.passes(_ROWS)
        self.rows = passes * self.rows_at_once
        self.columns = _columns(problem, e.host)
        self.packed = problem.weight in NIBBLES
        self.size = SIZES[problem.weight]
        self.parts = _LINE // e.lanes // self.size
        if self.packed:
            self.parts = problem.nibbles_in_lane(e.lanes)
        self.chunk = self.parts * e.lanes
        self.buffer = e.room(_LINE)
        # The last group's last vector may begin anywhere below k.
        self.padded = task.rounded(e.b.add(task[Word.K], I64(e.lanes)), _STEP)
        self.row_bytes = e.b.mul(self.padded, I64(4))
        self.groups = task.parts(task[Word.K], task[Word.GROUP]) if problem.group else I64(1)
        self.ahead = task.ahead(self.columns, self._bytes(task[Word.K]))
        self.acts = self.all_acts = self.reserve(self.row_bytes, self.rows)
        """Activations of the current rows, and of all."""
        self.plain = self.reserve(self.row_bytes)
        self.pitch = e.b.mul(task.rounded(task[Word.N], 16), I64(4))
        self.sums = self.reserve(self.pitch, self.rows)
        scales = self.padded if problem.common_scales else e.b.mul(task[Word.N], self.groups)
        self.scales = self.reserve(scales, 4)
        self.zeros = self.reserve(I64(0))

    def write_batch(self, batch: Value) -> None:
        """Write the code for one batch entry."""
        e, b, task = self.e, self.b, self.task
        if self.problem.group:
            self.take_tables(self.groups, self.scales, self.zeros)
        if self.problem.common_scales:
            self.take_common_scales(TaskRange(I64(0), task[Word.K]), self.scales)
        self._take_activations(batch)
        with (
            e.loop(0, task[Word.N], self.columns) as n,
            e.loop(0, self.rows, self.rows_at_once) as row,
        ):
            self.acts = e.at(self.all_acts, b.mul(self.row_bytes, row))
            corner = b.add(b.mul(self.pitch, row), b.mul(n, I64(4)))
            for i, total in enumerate(self._block(batch, n)):
                place = b.add(corner, b.mul(self.pitch, I64(i)))
                e.store(total, e.at(self.sums, place))
        self.finish_all(batch, SumTile(self.sums, self.pitch))

    # Conversion of activations

    def _take_activations(self, batch: Value) -> None:
        """Convert rows to f32 in scratch; missing rows are zeros."""
        e, b = self.e, self.b
        for row in range(self.rows):
            taken = self.act_row(batch, I64(row))
            target = e.at(self.all_acts, b.mul(self.row_bytes, I64(row)))
            widen_row(e, taken, self.plain if self.packed else target, self.padded)
            if self.packed:
                self._reorder(self.plain, target)

    def _reorder(self, plain: Value, target: Value) -> None:
        """Reorder chunks as shifts of packed lanes yield the weights."""
        e, b, lanes = self.e, self.b, self.e.lanes
        with e.loop(0, self.row_bytes, 4 * self.chunk) as offset:
            values = e.load(e.at(plain, offset), F32, self.chunk)
            nothing = ir.Constant(values.type, ir.Undefined)
            for part in range(self.parts):
                numbers = range(part, self.chunk, self.parts)
                place = e.at(target, b.add(offset, I64(4 * lanes * part)))
                e.store(e.lanes_of(values, nothing, numbers), place)

    # Sums of a block of columns

    def _block(self, batch: Value, n: Value) -> list[Value]:
        """Return the sums of each row with the block's columns, one vector per row."""
        e, b, task, problem = self.e, self.b, self.task, self.problem
        places = self.columns_from(n, self.columns, task[Word.N])
        weights = self.weights_of(batch, places)
        totals = [
            [e.variable(e.zero(e.lanes)) for _ in range(self.columns)]
            for _ in range(self.rows_at_once)
        ]
        if problem.group == 0:
            self._group(weights, places, I64(0), (I64(0), task[Word.K]), totals)
        else:
            with e.loop(0, self.groups) as group:
                begin = b.mul(group, task[Word.GROUP])
                end = task.least(b.add(begin, task[Word.GROUP]), task[Word.K])
                self._group(weights, places, group, (begin, end), totals)
        return sums_of_rows(e, [[total.get() for total in row] for row in totals])

    def _group(
        self,
        weights: list[Value],
        places: list[Value],
        group: Value,
        span: tuple[Value, Value],
        totals: list[list[Variable]],
    ) -> None:
        """Add a group's products to the totals."""
        e, problem, lanes = self.e, self.problem, self.e.lanes
        scales = [self._number(Word.SCALE, place, group) for place in places]
        zeros = [self._number(Word.ZERO, place, group) for place in places]
        if not problem.column_scales:
            self._chunks(weights, zeros, span, totals)
        else:
            partial_sums = [[e.variable(e.zero(lanes)) for _ in row] for row in totals]
            self._chunks(weights, zeros, span, partial_sums)
            for row, sums in zip(totals, partial_sums, strict=True):
                for total, part, scale in zip(row, sums, scales, strict=True):
                    assert scale is not None
                    total.set(e.fma(part.get(), scale, total.get()))

    def _number(self, table: Word, place: Value, group: Value) -> Value | None:
        """Return a column's scale or zero point in all lanes; None if it has none of its own."""
        e, b = self.e, self.b
        if not self.task.by_column(table):
            return None
        if self.problem.group == 0:
            return e.splat(self.task.number(table, place, group), e.lanes)
        index = b.add(b.mul(place, self.groups), group)
        base = self.scales if table is Word.SCALE else self.zeros
        return e.splat(e.load(e.at(base, b.mul(index, I64(4))), F32), e.lanes)

    def _chunks(
        self,
        weights: list[Value],
        numbers: Sequence[Value | None],
        span: tuple[Value, Value],
        sums: list[list[Variable]],
    ) -> None:
        """Add products of complete chunks, then of the remainder.

        ``numbers`` are the columns' zero points.
        """
        e, b = self.e, self.b
        begin, end = span
        whole = b.add(begin, b.and_(b.sub(end, begin), I64(-self.chunk)))
        with e.loop(begin, whole, self.chunk) as k:
            places = [e.at(weight, self._bytes(k)) for weight in weights]
            for place in places:
                e.prefetch(e.at(place, self.ahead))
            self._multiply(places, numbers, k, sums, self.parts)
        if not self.packed and self.parts > 1:
            begin, step = whole, e.lanes
            whole = b.add(begin, b.and_(b.sub(end, begin), I64(-step)))
            with e.loop(begin, whole, step) as k:
                places = [e.at(weight, self._bytes(k)) for weight in weights]
                self._multiply(places, numbers, k, sums, 1)
        left = b.sub(end, whole)
        with b.if_then(b.icmp_signed(">", left, I64(0)), likely=False):
            count = self._bytes(b.add(left, I64(1)) if self.packed else left)
            for column, weight in enumerate(weights):
                copy_bytes(e, e.at(weight, self._bytes(whole)), count, self.buffer, (0, _LINE))
                ours = [[row[column]] for row in sums]
                parts = self.parts if self.packed else 1
                self._multiply([self.buffer], [numbers[column]], whole, ours, parts, left)

    def _bytes(self, k: Value) -> Value:
        return self.b.lshr(k, I64(1)) if self.packed else self.b.mul(k, I64(self.size))

    def _multiply(
        self,
        places: list[Value],
        numbers: Sequence[Value | None],
        k: Value,
        sums: list[list[Variable]],
        parts: int,
        count: Value | None = None,
    ) -> None:
        """Add the products of some vectors of weights; only of ``count`` weights, if given."""
        e, b, lanes = self.e, self.b, self.e.lanes
        packed = [self._packed(place) for place in places] if self.packed else []
        for part in range(parts):
            offset = b.mul(b.add(k, I64(part * lanes)), I64(4))
            acts = [
                e.load(e.at(self.acts, b.add(offset, b.mul(self.row_bytes, I64(row)))), F32, lanes)
                for row in range(self.rows_at_once)
            ]
            scales = None
            if self.problem.common_scales:
                scales = e.load(e.at(self.scales, offset), F32, lanes)
            for column, (place, number) in enumerate(zip(places, numbers, strict=True)):
                if self.packed:
                    weight = self._part(packed[column], part, number)
                else:
                    at = e.at(place, part * lanes * self.size)
                    weight = load_f32(e, at, self.problem.weight, lanes)
                    weight = dequantised(self.task, weight, number, scales)
                    weight = weight if count is None else self._first(weight, count)
                for act, row in zip(acts, sums, strict=True):
                    row[column].set(e.fma(act, weight, row[column].get()))

    def _first(self, weight: Value, count: Value) -> Value:
        """Replace weights from ``count`` on by zeros, as they belong to another group."""
        e, lanes = self.e, self.e.lanes
        numbers = ir.Constant(ir.VectorType(I32, lanes), list(range(lanes)))
        there = self.b.icmp_signed("<", numbers, e.splat(self.b.trunc(count, I32), lanes))
        return self.b.select(there, weight, e.zero(lanes))

    def _packed(self, place: Value) -> Value:
        """Load a chunk of 4-bit weights, ``parts`` of them in each i32."""
        kind = {2: I8, 4: I16, 8: I32}[self.parts]
        raw = self.e.load(place, kind, self.e.lanes)
        return raw if kind is I32 else self.b.zext(raw, self.e.vector(I32, self.e.lanes))

    def _part(self, packed: Value, part: int, number: Value | None) -> Value:
        """Return weight ``part`` of each lane."""
        e, b, lanes = self.e, self.b, self.e.lanes

        def bits(count: int) -> Value:
            return e.splat(I32(count), lanes)

        if self.problem.weight is DType.I4:
            whole = b.ashr(b.shl(packed, bits(28 - 4 * part)), bits(28))
        else:
            whole = b.and_(b.lshr(packed, bits(4 * part)), bits(15))
        value = b.sitofp(whole, ir.VectorType(F32, lanes))
        return dequantised(self.task, value, number, None)
