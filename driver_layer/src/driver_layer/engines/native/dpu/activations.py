"""Activations, stored contiguously in scratch as units of 32 bits (see ``flavours``)."""

from __future__ import annotations

from collections.abc import Sequence

from driver_layer.abi.dtypes import FLOAT8, DType
from driver_layer.engines.native.dpu.finish import TaskRange
from driver_layer.engines.native.dpu.flavours import NumberFormat, dot, parts_of, side_by_side
from driver_layer.engines.native.dpu.problem import FLOATS, SIZES
from driver_layer.engines.native.dpu.rows import Row, take_row, widen_row
from driver_layer.engines.native.dpu.task import KernelArguments
from driver_layer.engines.native.dpu.words import Word
from driver_layer.engines.native.jit.emitter import F32, I8, I16, I32, I64, Value
from driver_layer.engines.native.jit.memory_types import load_f32

UNITS = 256
"""Maximum units of a row: those of 8 rows fit into the first-level cache."""

_AHEAD = 4
"""Prefetch distance in rows."""


def pitch_of(units: int) -> int:
    """Return the bytes from row to row, an odd number of lines, so that rows use all cache sets."""
    return 64 * (-(-units // 16) | 1)


PITCH = pitch_of(UNITS)


class Activations:
    """Writer of the code that converts activations.

    Args:
        flavour: number format of the units.
        task: the kernel's arguments.
        rows: capacity in rows.
        units: capacity of a row in units.
    """

    def __init__(
        self,
        flavour: NumberFormat,
        task: KernelArguments,
        rows: int,
        units: int = UNITS,
    ) -> None:
        self.problem, self.flavour, self.task = task.problem, flavour, task
        problem = task.problem
        self.e, self.b = task.e, task.e.b
        self.pitch = pitch_of(units)
        self._part = rows * self.pitch
        self._guarded = problem.weight in FLOATS or problem.weight in FLOAT8
        self.sums = self.e.at(self.e.scratch, flavour.act_parts * self._part)
        """Address of i32 sums of rows, if they are needed."""
        self.sums_rows = flavour is NumberFormat.BYTES and (
            problem.weight is DType.U8 or problem.zero is not DType.UNSET
        )

    @staticmethod
    def size(flavour: NumberFormat, rows: int, units: int = UNITS) -> int:
        """Return the bytes of the activations, at the begin of scratch."""
        return rows * (pitch_of(units) * flavour.act_parts + 4)

    def row(self, number: Value, part: int = 0) -> Value:
        """Return the address of a row's units; of their lower parts if ``part`` is 1."""
        offset = self.b.add(self.b.mul(number, I64(self.pitch)), I64(part * self._part))
        return self.e.at(self.e.scratch, offset)

    def take(
        self,
        batch: Value,
        rows: TaskRange,
        depth: TaskRange,
        multiples: tuple[int, int],
        scales: Value | None = None,
    ) -> None:
        """Convert rows, for a range of k, to units in scratch.

        Args:
            batch: number of the batch entry.
            rows: range of rows.
            depth: range of k.
            multiples: multiples of rows and k to which the units are padded with zeros.
            scales: address of a factor for each k of the range, an f32; for ``THIRDS``.
        """
        e, b, task = self.e, self.b, self.task
        padded = task.rounded(depth.count, multiples[1])
        with e.loop(0, task.rounded(rows.count, multiples[0])) as row:
            there = b.icmp_signed("<", row, rows.count)
            count = b.select(there, depth.count, I64(0))
            source = task.address(
                Word.ACT,
                (batch, Word.ACT_B),
                (b.add(rows.begin, row), Word.ACT_M),
                (depth.begin, Word.ACT_K),
            )
            taken = Row(self.problem.act, source, task[Word.ACT_K], count)
            self._take_row(taken, row, padded, scales)
            if self.sums_rows:
                place = e.at(self.sums, b.mul(row, I64(4)))
                e.store(self._sum_of_bytes(self.row(row), padded), place)

    def _take_row(self, row: Row, number: Value, padded: Value, scales: Value | None) -> None:
        e, b = self.e, self.b
        target = self.row(number)
        if self.flavour is NumberFormat.F32:
            widen_row(e, row, target, padded)
            return
        if self.flavour.act_parts > 1:
            targets = [self.row(number, part) for part in range(self.flavour.act_parts)]
            self._split_row(row, targets, padded, scales)
            return
        if self.flavour in (NumberFormat.BF16, NumberFormat.HALVED_WEIGHTS):

            def copied(address: Value, width: int) -> Value:
                return e.load(address, I16, width)

            take_row(e, row, target, copied, (I16(0), padded), 2 * e.lanes)
            return
        if self.flavour is NumberFormat.WORDS:
            zero = b.trunc(self.task[Word.ACT_ZERO], I16)
            widen = b.sext if self.problem.act is DType.I8 else b.zext

            def centred(address: Value, width: int) -> Value:
                wide = widen(e.load(address, I8, width), e.vector(I16, width))
                return b.sub(wide, e.splat(zero, width))

            take_row(e, row, target, centred, (I16(0), padded), 2 * e.lanes)
            return
        moved = I8(-128 if self.problem.act is DType.I8 else 0)

        def unsigned(address: Value, width: int) -> Value:
            return b.xor(e.load(address, I8, width), e.splat(moved, width))

        take_row(e, row, target, unsigned, (I8(0), padded), 4 * e.lanes)

    def _split_row(
        self, row: Row, targets: Sequence[Value], padded: Value, scales: Value | None
    ) -> None:
        """Write all parts of a row, padded with zeros."""
        e, b, lanes = self.e, self.b, self.e.lanes
        dense = b.icmp_signed("==", row.stride, I64(SIZES[row.kind]))
        whole = b.select(dense, b.and_(row.count, I64(-2 * lanes)), I64(0))

        def numbers(index: Value, width: int) -> Value:
            found = load_f32(e, e.at(row.address, b.mul(index, row.stride)), row.kind, width)
            if scales is None:
                return found
            return b.fmul(found, e.load(e.at(scales, b.mul(index, I64(4))), F32, width))

        def place(target: Value, index: Value) -> Value:
            return e.at(target, b.mul(index, I64(2)))

        with e.loop(0, whole, 2 * lanes) as index:
            first, second = (
                parts_of(e, numbers(b.add(index, I64(i)), lanes), len(targets), self._guarded)
                for i in (0, lanes)
            )
            for target, low, high in zip(targets, first, second, strict=True):
                e.store(side_by_side(e, low, high), place(target, index))
            ahead = b.mul(self.task[Word.ACT_M], I64(_AHEAD))
            e.prefetch(e.at(e.at(row.address, b.mul(index, row.stride)), ahead))
        with e.loop(whole, row.count) as index:
            parts = parts_of(e, numbers(index, 1), len(targets), self._guarded)
            for target, part in zip(targets, parts, strict=True):
                e.store(b.trunc(b.lshr(part, I32(16)), I16), place(target, index))
        with e.loop(row.count, padded) as index:
            for target in targets:
                e.store(I16(0), place(target, index))

    def _sum_of_bytes(self, row: Value, count: Value) -> Value:
        e, b, lanes = self.e, self.b, self.e.lanes
        total = e.variable(I32(0))
        whole = b.and_(count, I64(-4 * lanes))
        ones = e.splat(I32(0x01010101), lanes)
        sums = e.variable(e.splat(I32(0), lanes))
        with e.loop(0, whole, 4 * lanes) as k:
            units = e.load(e.at(row, k), I32, lanes)
            sums.set(dot(e, self.flavour, sums.get(), units, ones))
        total.set(e.reduce(sums.get(), b.add))
        with e.loop(whole, count) as k:
            total.set(b.add(total.get(), b.zext(e.load(e.at(row, k), I8), I32)))
        return total.get()
