"""Matmuls of few rows with weights along n: each k adds a multiple of a row of weights.

No operand is packed, as weights are used only once: they are loaded from memory into registers,
where the sums of all rows with a few vectors of columns stay for a complete group of k. Columns
that do not fill a vector are copied to a buffer, so that no byte beyond the operand is read.

Weights may be stored in several parts along k, as the values of a KV cache and of a new token are:
each part continues the sums of the previous one.
"""

from __future__ import annotations

from functools import partial
from math import prod

from driver_layer.engines.native.dpu.finish import SumTile
from driver_layer.engines.native.dpu.problem import (
    EXACT_ROWS,
    FLOATS,
    SIZES,
    MatmulKernel,
    MatmulProblem,
    WeightLayout,
)
from driver_layer.engines.native.dpu.rows import copy_bytes, widen_row
from driver_layer.engines.native.dpu.tables import column_numbers, dequantised
from driver_layer.engines.native.dpu.task import KernelArguments
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.dpu.writer import KernelWriter
from driver_layer.engines.native.jit.emitter import F32, I64, Emitter, Value, Variable
from driver_layer.engines.native.jit.host import Host
from driver_layer.engines.native.jit.memory_types import load_f32

_ROWS, _VECTORS = 4, 4
"""Maximum rows, and vectors of columns, that are summed at a time."""

_AHEAD = 32
"""Prefetch distance in rows of weights, that is, in k."""

_LINE = 64


def choose(problem: MatmulProblem, host: Host) -> MatmulKernel | None:
    """Return the kernel, if it can compute the problem."""
    if host.lanes == 1 or problem.rows > EXACT_ROWS:
        return None
    if problem.layout is not WeightLayout.N or problem.act not in FLOATS:
        return None
    scratch = partial(_scratch, prod(problem.passes(_ROWS)))
    return MatmulKernel(_Axpy.spec(problem), scratch, takes_parts=True)


def _scratch(rows: int, m: int, n: int, k: int) -> int:
    return 4 * rows * (k + 16 + n + 16) + 64


class _Axpy(KernelWriter):
    """Writer of one kernel."""

    family = "axpy"

    def __init__(self, problem: MatmulProblem, e: Emitter) -> None:
        super().__init__(problem, e)
        passes, self.rows_at_once = problem.passes(_ROWS)
        self.rows = passes * self.rows_at_once
        task = self.task
        self.size = SIZES[problem.weight]
        self.buffer = e.room(_LINE)
        self.act_pitch = e.b.mul(task.rounded(task[Word.K], 16), I64(4))
        self.sum_pitch = e.b.mul(task.rounded(task[Word.N], 16), I64(4))
        self.acts = self.reserve(self.act_pitch, self.rows)
        self.sums = self.reserve(self.sum_pitch, self.rows)

    def write_batch(self, batch: Value) -> None:
        """Write the code for one batch entry."""
        e, b, task = self.e, self.b, self.task
        lanes, vectors = e.lanes, _VECTORS
        n = task[Word.N]
        blocks = b.sub(n, b.srem(n, I64(vectors * lanes)))
        pairs = b.and_(n, I64(-2 * lanes))
        whole = b.and_(n, I64(-lanes))
        for row in range(self.rows):
            widen_row(e, self.act_row(batch, I64(row)), self._act(I64(row), I64(0)), task[Word.K])
        with e.loop(0, blocks, vectors * lanes) as column:
            self._block((batch, column), vectors)
        with e.loop(blocks, pairs, 2 * lanes) as column:
            self._block((batch, column), 2)
        with e.loop(pairs, whole, lanes) as column:
            self._block((batch, column), 1)
        with e.loop(whole, n, lanes) as column:
            self._block((batch, column), 1, b.sub(n, column))
        self.finish_all(batch, SumTile(self.sums, self.sum_pitch))

    def _act(self, row: Value, k: Value) -> Value:
        b = self.b
        return self.e.at(self.acts, b.add(b.mul(self.act_pitch, row), b.mul(k, I64(4))))

    def _block(self, place: tuple[Value, Value], vectors: int, count: Value | None = None) -> None:
        """Sum some vectors of columns; only ``count`` columns of a single vector, if given."""
        rows = self.rows_at_once
        # The first rows bring weights from memory to a cache, where the others find them.
        with self.e.loop(0, self.rows, rows) as row:
            sums = self._sums(place, (row, rows), vectors, count)
            for i, totals in enumerate(sums):
                pitch = self.b.mul(self.sum_pitch, self.b.add(row, I64(i)))
                target = self.e.at(self.sums, self.b.add(pitch, self.b.mul(place[1], I64(4))))
                for j, total in enumerate(totals):
                    self.e.store(total.get(), self.e.at(target, 4 * self.e.lanes * j))

    def _sums(
        self,
        place: tuple[Value, Value],
        rows: tuple[Value, int],
        vectors: int,
        count: Value | None,
    ) -> list[list[Variable]]:
        e, b = self.e, self.b
        sums = [[e.variable(e.zero(e.lanes)) for _ in range(vectors)] for _ in range(rows[1])]
        before = e.variable(I64(0))
        with e.loop(0, self.task[Word.PARTS]) as number:
            part = KernelArguments(self.problem, e, number)
            self._part((part, before.get()), place, rows[0], sums, count)
            before.set(b.add(before.get(), part[Word.PART_K]))
        return sums

    def _part(
        self,
        part: tuple[KernelArguments, Value],
        place: tuple[Value, Value],
        row: Value,
        sums: list[list[Variable]],
        count: Value | None,
    ) -> None:
        """Add the products of a part's weights; ``part`` is (its words, the k before it)."""
        e, b, lanes, (task, before), (batch, n) = self.e, self.b, self.e.lanes, part, place
        vectors = len(sums[0])
        first = task.address(Word.WEIGHT, (batch, Word.WEIGHT_B), (n, Word.WEIGHT_N))
        ahead = b.mul(task[Word.WEIGHT_K], I64(_AHEAD))
        size = task[Word.GROUP] if self.problem.group else task[Word.PART_K]
        with e.loop(0, task.parts(task[Word.PART_K], size)) as group:
            columns = [b.add(n, I64(lanes * i)) for i in range(vectors)]
            zeros = [column_numbers(task, Word.ZERO, (c, group), lanes) for c in columns]
            scales = [column_numbers(task, Word.SCALE, (c, group), lanes) for c in columns]
            begin = b.mul(group, size)
            end = task.least(b.add(begin, size), task[Word.PART_K])
            with e.loop(begin, end) as k:
                stored = e.at(first, b.mul(k, task[Word.WEIGHT_K]))
                weights = self._weights(stored, ahead, vectors, count)
                if self.problem.common_scales:
                    scales = [e.splat(task.common_scale(k), lanes)] * vectors
                numbers = [
                    dequantised(task, *parts) for parts in zip(weights, zeros, scales, strict=True)
                ]
                self._add((row, b.add(before, k)), numbers, sums)

    def _weights(self, row: Value, ahead: Value, vectors: int, count: Value | None) -> list[Value]:
        """Load the stored weights of one k, as f32."""
        e, lanes = self.e, self.e.lanes
        if count is not None:
            present = self.b.mul(count, I64(self.size))
            copy_bytes(e, row, present, self.buffer, (0, lanes * self.size))
            row = self.buffer
        else:
            for offset in range(0, vectors * lanes * self.size, _LINE):
                e.prefetch(e.at(row, self.b.add(ahead, I64(offset))))
        step = lanes * self.size
        return [
            load_f32(e, e.at(row, step * i), self.problem.weight, lanes) for i in range(vectors)
        ]

    def _add(
        self, place: tuple[Value, Value], weights: list[Value], sums: list[list[Variable]]
    ) -> None:
        e, (row, k) = self.e, place
        for i, totals in enumerate(sums):
            act = e.splat(e.load(self._act(self.b.add(row, I64(i)), k), F32), e.lanes)
            for weight, total in zip(weights, totals, strict=True):
                total.set(e.fma(act, weight, total.get()))
