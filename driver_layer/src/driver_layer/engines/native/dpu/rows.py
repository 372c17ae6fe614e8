"""Rows of elements, converted and stored contiguously in scratch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu.problem import SIZES
from driver_layer.engines.native.jit.emitter import F32, I1, I8, I32, I64, Emitter, Value
from driver_layer.engines.native.jit.memory_types import load_f32


@dataclass(frozen=True, slots=True)
class Row:
    """A strided row of elements in memory."""

    kind: DType
    address: Value
    stride: Value
    count: Value


Take = Callable[[Value, int], Value]
"""Returns the converted elements, given the address and number of contiguous elements."""


def take_row(
    e: Emitter,
    row: Row,
    target: Value,
    take: Take,
    padding: tuple[Value, Value],
    lanes: int,
) -> None:
    """Write a row's elements after conversion by ``take``.

    Args:
        e: emitter of the kernel.
        row: row to read.
        target: address to write to.
        take: conversion, called for one element, and for ``lanes`` contiguous ones.
        padding: element to write after the row, and the padded number of elements.
        lanes: number of contiguous elements to convert at a time.
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
    """Write a row as f32, padded with zeros to ``padded`` elements."""

    def widened(address: Value, width: int) -> Value:
        return load_f32(e, address, row.kind, width)

    until = row.count if padded is None else padded
    take_row(e, row, target, widened, (F32(0.0), until), e.lanes)


def load_some(e: Emitter, address: Value, count: Value) -> Value:
    """Load the first ``count`` of 64 bytes; the others are zeros, and not read."""
    b, most = e.b, 64
    some = b.sub(b.shl(I64(1), count), I64(1))
    bits = b.select(b.icmp_signed("<", count, I64(most)), some, I64(-1))
    there = b.bitcast(bits, ir.VectorType(I1, most))
    bytes_ = ir.VectorType(I8, most)
    name = f"llvm.masked.load.v{most}i8.p0"
    nothing = ir.Constant(bytes_, None)
    return e.external(name, address, I32(1), there, nothing, result=bytes_)


def copy_bytes(
    e: Emitter, source: Value, count: Value, target: Value, padding: tuple[int, int]
) -> None:
    """Copy bytes; pad with the byte ``padding[0]`` to ``padding[1]`` bytes."""
    filler, padded = padding
    with e.loop(0, count) as i:
        e.store(e.load(e.at(source, i), I8), e.at(target, i))
    with e.loop(count, padded) as i:
        e.store(I8(filler), e.at(target, i))
