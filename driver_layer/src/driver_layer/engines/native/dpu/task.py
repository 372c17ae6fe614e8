"""A kernel's arguments as values, and addresses computed from them."""

from __future__ import annotations

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu.problem import MatmulProblem
from driver_layer.engines.native.dpu.words import TABLE_STRIDES, WORDS, Word
from driver_layer.engines.native.jit.emitter import F32, I64, PTR, Emitter, Value
from driver_layer.engines.native.jit.memory_types import load_f32

_POINTERS = frozenset({Word.ACT, Word.WEIGHT, Word.OUT, Word.SCALE, Word.ZERO, Word.ACT_SCALE})

_AHEAD = 4096
"""Approximate prefetch distance in bytes."""

_AHEAD_BY_HALVES = 2048
"""Prefetch distance for columns that are fetched in halves."""


class KernelArguments:
    """Words of a task, or of a part of its weights, loaded once.

    Args:
        problem: the problem that the kernel computes.
        e: emitter of the kernel.
        part: number of the part; by default the first.
    """

    def __init__(self, problem: MatmulProblem, e: Emitter, part: Value | None = None) -> None:
        self.problem, self.e = problem, e
        words = e.args if part is None else e.at(e.args, e.b.mul(part, I64(8 * WORDS)))
        kinds = [PTR if i in _POINTERS else I64 for i in range(WORDS)]
        self._words = [e.load(e.at(words, 8 * i), kind) for i, kind in enumerate(kinds)]
        self.alpha = e.load(e.at(words, 8 * Word.ALPHA), F32)

    def __getitem__(self, word: Word) -> Value:
        return self._words[word]

    def offset(self, *parts: tuple[Value, Word]) -> Value:
        """Return the byte offset of indices along strides."""
        b = self.e.b
        total: Value = I64(0)
        for number, stride in parts:
            total = b.add(total, b.mul(number, self[stride]))
        return total

    def address(self, pointer: Word, *parts: tuple[Value, Word]) -> Value:
        """Return the address of indices along strides."""
        return self.e.at(self[pointer], self.offset(*parts))

    def number(self, table: Word, n: Value, group: Value) -> Value:
        """Load the scale or zero point of a column's group, as f32."""
        along_n, along_k = TABLE_STRIDES[table]
        address = self.address(table, (n, along_n), (group, along_k))
        return load_f32(self.e, address, self.kind(table), 1)

    def common_scale(self, k: Value) -> Value:
        """Load the scale that all columns share at a k, as f32; 0 beyond the last k."""
        b = self.e.b
        there = b.icmp_signed("<", k, self[Word.PART_K])
        last = b.sub(self[Word.PART_K], I64(1))
        scale = self.number(Word.SCALE, I64(0), b.select(there, k, last))
        return b.select(there, scale, F32(0.0))

    def by_column(self, table: Word) -> bool:
        """Return whether columns have entries of their own in ``SCALE`` or ``ZERO``."""
        common = table is Word.SCALE and self.problem.common_scales
        return self.kind(table) is not DType.UNSET and not common

    def kind(self, table: Word) -> DType:
        """Return the element type of ``SCALE`` or ``ZERO``; UNSET without such a table."""
        return self.problem.scale if table is Word.SCALE else self.problem.zero

    def least(self, a: Value, b: Value) -> Value:
        """Return the smaller of two numbers."""
        return self.e.b.select(self.e.b.icmp_signed("<", a, b), a, b)

    def parts(self, count: Value, size: Value) -> Value:
        """Return the number of parts of a size: a quotient, rounded up."""
        b = self.e.b
        return b.udiv(b.add(count, b.sub(size, I64(1))), size)

    def rounded(self, value: Value, multiple: int) -> Value:
        """Return a number rounded up to a multiple, which is a power of two."""
        b = self.e.b
        return b.and_(b.add(value, I64(multiple - 1)), I64(-multiple))

    def ahead(self, columns: int, width: Value | None = None) -> Value:
        """Return the prefetch distance: complete steps of columns, at least some kilobytes.

        Args:
            columns: number of columns that are read together.
            width: bytes of a column, if columns of other heads lie in between.
        """
        b = self.e.b
        step = b.mul(self[Word.WEIGHT_N], I64(columns))
        read = step if width is None else self.least(step, b.mul(width, I64(columns)))
        some = b.select(b.icmp_signed(">", read, I64(0)), read, I64(_AHEAD))
        return b.mul(step, b.add(b.udiv(I64(_AHEAD), some), I64(1)))

    def ahead_by_halves(self, columns: int) -> Value:
        """Return a prefetch distance of an odd number of half steps of columns.

        Once reading begins in a page, the hardware prefetches further lines of it. Columns in one
        page are fetched in two halves, one before the other, so that the second half is already on
        its way. This is a tenth faster than complete steps.
        """
        b = self.e.b
        half = b.mul(self[Word.WEIGHT_N], I64(columns // 2))
        some = b.select(b.icmp_signed(">", half, I64(0)), half, I64(_AHEAD_BY_HALVES))
        return b.mul(half, b.or_(b.udiv(I64(_AHEAD_BY_HALVES), some), I64(3)))
