"""Rows of elements, brought side by side into scratch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu.finish import SIZES
from driver_layer.engines.native.jit.emitter import F32, I1, I8, I32, I64, PTR, Emitter, Value
from driver_layer.engines.native.jit.memory_types import load_f32


@dataclass(frozen=True, slots=True)
class Row:
    """Elements in memory."""

    kind: DType
    address: Value
    stride: Value
    count: Value


Take = Callable[[Value, int], Value]
"""Gives what to write of so many elements that lie side by side at an address."""


def take_row(
    e: Emitter,
    row: Row,
    target: Value,
    take: Take,
    padding: tuple[Value, Value],
    lanes: int,
) -> None:
    """Write what ``take`` gives of a row's elements.

    Args:
        e: the kernel that is written.
        row: what to read.
        target: where to write.
        take: called for one element, and for ``lanes`` of them.
        padding: one element to write behind them, until there are how many.
        lanes: how many are taken at a time, where they lie side by side.
    """
    b = e.b
    filler, padded = padding
    size = 4 if filler.type is F32 else filler.type.width // 8
    dense = b.icmp_signed("==", row.stride, I64(SIZES[row.kind]))
    vectors = b.select(dense, b.and_(row.count, I64(-lanes)), I64(0))

    def move(index: Value, width: int) -> None:
        value = take(e.at(row.address, b.mul(index, row.stride)), width)
        e.store(value, e.at(target, b.mul(index, I64(size))))

    with e.loop(0, vectors, lanes) as index:
        move(index, lanes)
    with e.loop(vectors, row.count) as index:
        move(index, 1)
    with e.loop(row.count, padded) as index:
        e.store(filler, e.at(target, b.mul(index, I64(size))))


def widen_row(e: Emitter, row: Row, target: Value, padded: Value | None = None) -> None:
    """Write a row as f32, then zeros until there are ``padded``."""

    def widened(address: Value, width: int) -> Value:
        return load_f32(e, address, row.kind, width)

    until = row.count if padded is None else padded
    take_row(e, row, target, widened, (F32(0.0), until), e.lanes)


def load_some(e: Emitter, address: Value, count: Value) -> Value:
    """Load the first of 64 bytes, less than all; the others are zeros, and are not touched."""
    b, most = e.b, 64
    bits = b.sub(b.shl(I64(1), count), I64(1))
    there = b.bitcast(bits, ir.VectorType(I1, most))
    bytes_ = ir.VectorType(I8, most)
    kind = ir.FunctionType(bytes_, [PTR, I32, there.type, bytes_])
    name = f"llvm.masked.load.v{most}i8.p0"
    return e.call(kind, name, address, I32(1), there, ir.Constant(bytes_, None))


def copy_bytes(
    e: Emitter, source: Value, count: Value, target: Value, padding: tuple[int, int]
) -> None:
    """Copy bytes, and write one, ``padding[0]``, behind them until there are ``padding[1]``."""
    filler, padded = padding
    with e.loop(0, count) as i:
        e.store(e.load(e.at(source, i), I8), e.at(target, i))
    with e.loop(count, padded) as i:
        e.store(I8(filler), e.at(target, i))
