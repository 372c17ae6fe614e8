"""Rows of numbers in scratch as f32."""

from __future__ import annotations

from dataclasses import dataclass

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu.finish import SIZES
from driver_layer.engines.native.jit.emitter import F32, I64, Emitter, Value
from driver_layer.engines.native.jit.memory_types import load_f32


@dataclass(frozen=True, slots=True)
class Row:
    """Elements in memory."""

    kind: DType
    address: Value
    stride: Value
    count: Value


def widen_row(e: Emitter, row: Row, target: Value, padded: Value | None = None) -> None:
    """Write a row as f32, then zeros until there are ``padded``."""
    b, lanes = e.b, e.lanes
    dense = b.icmp_signed("==", row.stride, I64(SIZES[row.kind]))
    vectors = b.select(dense, b.and_(row.count, I64(-lanes)), I64(0))

    def move(index: Value, width: int) -> None:
        value = load_f32(e, e.at(row.address, b.mul(index, row.stride)), row.kind, width)
        e.store(value, e.at(target, b.mul(index, I64(4))))

    with e.loop(0, vectors, lanes) as index:
        move(index, lanes)
    with e.loop(vectors, row.count) as index:
        move(index, 1)
    if padded is not None:
        with e.loop(row.count, padded) as index:
            e.store(F32(0.0), e.at(target, b.mul(index, I64(4))))
