"""Loads of any element type as f32 vectors, and stores from f32.

Results equal those of ``abi.dtypes`` and the reference engine: floats round to nearest, ties to
even; integers are truncated toward zero and saturate.
"""

from __future__ import annotations

from llvmlite import ir

from driver_layer.abi.dtypes import FLOAT8, DType
from driver_layer.engines.native.jit.emitter import F32, F64, I8, I16, I32, I64, Emitter, Value
from driver_layer.engines.native.jit.small_floats import (
    narrow_f8,
    narrow_f16,
    widen_f8,
    widen_f16,
)

_INTEGERS: dict[DType, tuple[ir.IntType, bool]] = {
    DType.I8: (I8, True),
    DType.U8: (I8, False),
    DType.BIN: (I8, False),
    DType.I32: (I32, True),
    DType.I64: (I64, True),
}
"""Storage type of each integer type, and whether it is signed."""

_LIMITS: dict[DType, tuple[float, float]] = {
    DType.I8: (-128, 127),
    DType.U8: (0, 255),
    DType.I32: (-(2**31), 2**31 - 1),
    # The largest f32 below 2**63, so that conversion to i64 does not overflow.
    DType.I64: (-(2**63), 2**63 - 2**39),
}


def load_f32(e: Emitter, address: Value, kind: DType, lanes: int) -> Value:
    """Load ``lanes`` contiguous elements as f32."""
    if kind is DType.FP32:
        return e.load(address, F32, lanes)
    if kind is DType.FP16:
        return widen_f16(e, e.load(address, I16, lanes), lanes)
    if kind is DType.BFP16:
        return widen_bf16(e, e.load(address, I16, lanes), lanes)
    if kind in FLOAT8:
        return widen_f8(e, e.load(address, I8, lanes), kind, lanes)
    storage, signed = _INTEGERS[kind]
    raw = e.load(address, storage, lanes)
    convert = e.b.sitofp if signed else e.b.uitofp
    return convert(raw, e.vector(F32, lanes))


def store_f32(e: Emitter, value: Value, address: Value, kind: DType, lanes: int) -> None:
    """Store ``lanes`` f32 values as contiguous elements, rounded to the element type."""
    if kind is DType.FP32:
        e.store(value, address)
    elif kind is DType.FP16:
        e.store(narrow_f16(e, value, lanes), address)
    elif kind is DType.BFP16:
        e.store(narrow_bf16(e, value, lanes), address)
    elif kind in FLOAT8:
        e.store(narrow_f8(e, value, kind, lanes), address)
    elif kind is DType.BIN:
        true = e.b.fcmp_unordered("!=", value, e.zero(lanes))
        e.store(e.b.zext(true, e.vector(I8, lanes)), address)
    else:
        e.store(_to_integer(e, value, kind, lanes), address)


def widen_bf16(e: Emitter, raw: Value, lanes: int) -> Value:
    """Widen raw bf16 to f32, exactly."""
    wide = e.b.zext(raw, e.vector(I32, lanes))
    return e.b.bitcast(e.b.shl(wide, e.whole(16, lanes)), e.vector(F32, lanes))


def narrow_bf16(e: Emitter, value: Value, lanes: int) -> Value:
    """Round f32 to raw bf16; NaN stays NaN."""
    b = e.b
    bits = b.bitcast(value, e.vector(I32, lanes))
    sixteen = e.whole(16, lanes)
    odd = b.and_(b.lshr(bits, sixteen), e.whole(1, lanes))
    rounded = b.lshr(b.add(b.add(bits, e.whole(0x7FFF, lanes)), odd), sixteen)
    number = b.fcmp_ordered("ord", value, value)
    chosen = b.select(number, rounded, e.whole(0x7FC0, lanes))
    return b.trunc(chosen, e.vector(I16, lanes))


def _to_integer(e: Emitter, value: Value, kind: DType, lanes: int) -> Value:
    """Clip in f64, which holds all limits exactly except i64's; NaN becomes the lowest value."""
    b = e.b
    storage, _ = _INTEGERS[kind]
    low, high = _LIMITS[kind]
    f64 = e.vector(F64, lanes)
    wide = b.fpext(value, f64)
    lowest, highest = e.constant(low, lanes, F64), e.constant(high, lanes, F64)
    above = b.select(b.fcmp_ordered(">", wide, lowest), wide, lowest)
    clipped = b.select(b.fcmp_ordered("<", above, highest), above, highest)
    whole = b.fptosi(clipped, e.vector(I64, lanes))
    return b.trunc(whole, e.vector(storage, lanes)) if storage is not I64 else whole
