"""Layout of K and V as static models read them: element type, order and ranges of rows."""

from __future__ import annotations

from dataclasses import dataclass

from npuw_layer.options.llm import KvElement
from npuw_layer.tensors.names import block_variable


@dataclass(frozen=True, slots=True)
class RowRange:
    """Contiguous stored rows.

    Attributes:
        begin: first row.
        rows: number of rows.
        suffix: suffix of the name of the variable that holds the rows.
    """

    begin: int
    rows: int
    suffix: str = ""

    def of(self, variable: str) -> str:
        """Return the name of the part of a variable that holds these rows."""
        return variable + self.suffix


@dataclass(frozen=True, slots=True)
class KVLayout:
    """Layout of K and V that all static models of an LLM share.

    Attributes:
        element: element type of caches. i8 stores 8 bits with a scale for each row of a head, in a
            separate variable; other types are floats; empty keeps the computed type.
        room: rows of V's buffers if V is stored channel by channel; None stores V token by token.
        block: rows of a block if caches are in blocks; None for one buffer.
    """

    element: KvElement = ""
    room: int | None = None
    block: int | None = None

    def spans(self, past: int) -> tuple[RowRange, ...]:
        """Return the row ranges in which a model reads its past; the last may be shorter."""
        if self.block is None or not past:
            return (RowRange(0, past),)
        whole, rest = divmod(past, self.block)
        spans = [
            RowRange(number * self.block, self.block, block_variable("", number))
            for number in range(whole)
        ]
        tail = [RowRange(past - rest, rest, block_variable("", None))] if rest else []
        return (*spans, *tail)

    def together(self, first: int, count: int, rows: int) -> bool:
        """Return whether a program may write ``count`` rows of a cache that has ``rows``.

        The rows, from ``first`` on, must exist and be contiguous: a program that writes to blocks
        begins at one and ends in it.
        """
        if self.block is None:
            return first + count <= rows
        return first % self.block == 0 and count <= self.block and first < rows


PLAIN = KVLayout()
"""The computed type, token by token, in one buffer."""
