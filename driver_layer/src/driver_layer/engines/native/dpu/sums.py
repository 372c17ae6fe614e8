"""Horizontal sums: addition of the lanes of vectors."""

from __future__ import annotations

from llvmlite import ir

from driver_layer.engines.native.jit.emitter import Emitter, Value


def sums_of_rows(e: Emitter, totals: list[list[Value]]) -> list[Value]:
    """Return a vector for each row: the lane sums of each of its vectors.

    All rows have the same number of vectors, a power of two. Rows are combined to fill a vector.
    """
    columns = len(totals[0])
    rows = max(1, min(1 << len(totals).bit_length() - 1, e.lanes // columns))
    result: list[Value] = []
    for begin in range(0, len(totals), rows):
        some = totals[begin : begin + rows]
        joined = sums_of(e, [total for row in some for total in row])
        nothing = ir.Constant(joined.type, ir.Undefined)
        for i in range(len(some)):
            numbers = range(columns * i, columns * (i + 1))
            result.append(e.lanes_of(joined, nothing, numbers) if len(some) > 1 else joined)
    return result


def sums_of(e: Emitter, vectors: list[Value]) -> Value:
    """Return a vector with the lane sums of several vectors; their number is a power of two."""
    lanes, width = e.lanes, e.lanes
    add = e.b.add if isinstance(vectors[0].type.element, ir.IntType) else e.b.fadd

    def halves(width: int, count: int) -> tuple[list[int], list[int]]:
        low = [begin + i for begin in range(0, count, width) for i in range(width // 2)]
        return low, [lane + width // 2 for lane in low]

    while len(vectors) > 1 and width > 1:
        low, high = halves(width, 2 * lanes)
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [add(e.lanes_of(x, y, low), e.lanes_of(x, y, high)) for x, y in pairs]
        width //= 2
    if len(vectors) > 1:
        return e.side_by_side(vectors)
    total = vectors[0]
    while width > 1:
        nothing = ir.Constant(total.type, ir.Undefined)
        low, high = halves(width, total.type.count)
        total = add(e.lanes_of(total, nothing, low), e.lanes_of(total, nothing, high))
        width //= 2
    return total
