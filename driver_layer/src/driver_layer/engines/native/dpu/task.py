"""A kernel's arguments as values, and the addresses that they lead to."""

from __future__ import annotations

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu.words import WORDS, Word
from driver_layer.engines.native.jit.emitter import F32, I64, PTR, Emitter, Value
from driver_layer.engines.native.jit.memory_types import load_f32

_POINTERS = frozenset({Word.ACT, Word.WEIGHT, Word.OUT, Word.SCALE, Word.ZERO, Word.ACT_SCALE})

_AHEAD = 4096
"""About so many bytes before its use memory is asked for."""

_AHEAD_BY_HALVES = 2048
"""The same where columns are asked for in halves."""


class Task:
    """The words of a task, or of a part of its weights, read once.

    Args:
        e: the kernel that is written.
        part: its number among the parts; the first if not given.
    """

    def __init__(self, e: Emitter, part: Value | None = None) -> None:
        self.e = e
        words = e.args if part is None else e.at(e.args, e.b.mul(part, I64(8 * WORDS)))
        kinds = [PTR if i in _POINTERS else I64 for i in range(WORDS)]
        self._words = [e.load(e.at(words, 8 * i), kind) for i, kind in enumerate(kinds)]
        self.alpha = e.load(e.at(words, 8 * Word.ALPHA), F32)

    def __getitem__(self, word: Word) -> Value:
        return self._words[word]

    def offset(self, *parts: tuple[Value, Word]) -> Value:
        """Bytes that numbers along strides lead to."""
        b = self.e.b
        total: Value = I64(0)
        for number, stride in parts:
            total = b.add(total, b.mul(number, self[stride]))
        return total

    def address(self, pointer: Word, *parts: tuple[Value, Word]) -> Value:
        """The address that numbers along strides lead to."""
        return self.e.at(self[pointer], self.offset(*parts))

    def scale(self, kind: DType, n: Value, group: Value) -> Value:
        """The scale of a column's group, in f32."""
        address = self.address(Word.SCALE, (n, Word.SCALE_N), (group, Word.SCALE_GROUP))
        return load_f32(self.e, address, kind, 1)

    def zero(self, kind: DType, n: Value, group: Value) -> Value:
        """The zero point of a column's group, in f32."""
        address = self.address(Word.ZERO, (n, Word.ZERO_N), (group, Word.ZERO_GROUP))
        return load_f32(self.e, address, kind, 1)

    def least(self, a: Value, b: Value) -> Value:
        """The smaller of two numbers."""
        return self.e.b.select(self.e.b.icmp_signed("<", a, b), a, b)

    def rounded(self, value: Value, multiple: int) -> Value:
        """A number rounded up to a multiple of a power of two."""
        b = self.e.b
        return b.and_(b.add(value, I64(multiple - 1)), I64(-multiple))

    def ahead(self, columns: int, width: Value | None = None) -> Value:
        """How far before its use memory is asked for: whole steps of columns, some kilobytes.

        Args:
            columns: how many are read side by side.
            width: bytes of a column, if others may lie between them, as those of other heads do.
        """
        b = self.e.b
        step = b.mul(self[Word.WEIGHT_N], I64(columns))
        read = step if width is None else self.least(step, b.mul(width, I64(columns)))
        some = b.select(b.icmp_signed(">", read, I64(0)), read, I64(_AHEAD))
        return b.mul(step, b.add(b.udiv(I64(_AHEAD), some), I64(1)))

    def ahead_by_halves(self, columns: int) -> Value:
        """How far before its use memory is asked for: an odd number of halves of what columns have.

        Processors read on by themselves in a page that was begun. Columns that lie in one page are
        asked for in two halves, one before the other, so that the second is found already on its
        way: that gives a tenth more than whole steps of columns.
        """
        b = self.e.b
        half = b.mul(self[Word.WEIGHT_N], I64(columns // 2))
        some = b.select(b.icmp_signed(">", half, I64(0)), half, I64(_AHEAD_BY_HALVES))
        return b.mul(half, b.or_(b.udiv(I64(_AHEAD_BY_HALVES), some), I64(3)))
