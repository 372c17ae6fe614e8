"""f32 vectors from memory of any element type, and back.

Means the same as ``abi.dtypes`` and the stores of the reference engine: f16 and bf16 round to the
nearest, ties to even; integers lose their fraction towards zero and stay in range.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.jit.emitter import F32, F64, I8, I16, I32, I64, Emitter, Value

_HALF = ir.HalfType()

_INTEGERS: dict[DType, tuple[ir.IntType, bool]] = {
    DType.I8: (I8, True),
    DType.U8: (I8, False),
    DType.BIN: (I8, False),
    DType.I32: (I32, True),
    DType.I64: (I64, True),
}
"""How integers are stored, and whether they have a sign."""

_LIMITS: dict[DType, tuple[float, float]] = {
    DType.I8: (-128, 127),
    DType.U8: (0, 255),
    DType.I32: (-(2**31), 2**31 - 1),
    # The largest f32 below 2**63 is the last that i64 can take.
    DType.I64: (-(2**63), 2**63 - 2**39),
}


def load_f32(e: Emitter, address: Value, kind: DType, lanes: int) -> Value:
    """Load ``lanes`` elements that lie side by side as f32."""
    if kind is DType.FP32:
        return e.load(address, F32, lanes)
    if kind is DType.FP16:
        return widen_f16(e, e.load(address, I16, lanes), lanes)
    if kind is DType.BFP16:
        return widen_bf16(e, e.load(address, I16, lanes), lanes)
    storage, signed = _INTEGERS[kind]
    raw = e.load(address, storage, lanes)
    convert = e.b.sitofp if signed else e.b.uitofp
    return convert(raw, e.vector(F32, lanes))


def store_f32(e: Emitter, value: Value, address: Value, kind: DType, lanes: int) -> None:
    """Store ``lanes`` f32 values side by side, rounded to the element type."""
    if kind is DType.FP32:
        e.store(value, address)
    elif kind is DType.FP16:
        e.store(_narrow_f16(e, value, lanes), address)
    elif kind is DType.BFP16:
        e.store(narrow_bf16(e, value, lanes), address)
    elif kind is DType.BIN:
        true = e.b.fcmp_unordered("!=", value, e.zero(lanes))
        e.store(e.b.zext(true, e.vector(I8, lanes)), address)
    else:
        e.store(_to_integer(e, value, kind, lanes), address)


def widen_bf16(e: Emitter, raw: Value, lanes: int) -> Value:
    """Turn raw bf16 into f32; exact."""
    wide = e.b.zext(raw, e.vector(I32, lanes))
    return e.b.bitcast(e.b.shl(wide, _splat(e, I32, 16, lanes)), e.vector(F32, lanes))


def narrow_bf16(e: Emitter, value: Value, lanes: int) -> Value:
    """Round f32 to raw bf16; a NaN stays a NaN."""
    b = e.b
    bits = b.bitcast(value, e.vector(I32, lanes))
    sixteen = _splat(e, I32, 16, lanes)
    odd = b.and_(b.lshr(bits, sixteen), _splat(e, I32, 1, lanes))
    rounded = b.lshr(b.add(b.add(bits, _splat(e, I32, 0x7FFF, lanes)), odd), sixteen)
    number = b.fcmp_ordered("ord", value, value)
    chosen = b.select(number, rounded, _splat(e, I32, 0x7FC0, lanes))
    return b.trunc(chosen, e.vector(I16, lanes))


def _splat(e: Emitter, kind: Any, value: int, lanes: int) -> Value:
    return e.splat(ir.Constant(kind, value), lanes)


def widen_f16(e: Emitter, raw: Value, lanes: int) -> Value:
    """Turn raw f16 into f32; exact."""
    if e.host.converts_f16:
        half = e.b.bitcast(raw, e.vector(_HALF, lanes))
        return e.b.fpext(half, e.vector(F32, lanes))
    return _widen_f16_by_bits(e, raw, lanes)


def _widen_f16_by_bits(e: Emitter, raw: Value, lanes: int) -> Value:
    """Without instructions for it: move exponent and fraction, then scale by 2**112.

    The product makes normal numbers of those that f16 holds without a leading one; infinities and
    NaNs, whose exponent is all ones, get the exponent of f32's.
    """
    b, i32 = e.b, e.vector(I32, lanes)
    wide = b.zext(raw, i32)
    sign = b.shl(b.and_(wide, _splat(e, I32, 0x8000, lanes)), _splat(e, I32, 16, lanes))
    rest = b.shl(b.and_(wide, _splat(e, I32, 0x7FFF, lanes)), _splat(e, I32, 13, lanes))
    scaled = b.fmul(b.bitcast(rest, e.vector(F32, lanes)), e.constant(2.0**112, lanes))
    special = b.icmp_unsigned(">=", rest, _splat(e, I32, 0x0F800000, lanes))
    infinite = b.or_(rest, _splat(e, I32, 0x7F800000, lanes))
    magnitude = b.select(special, infinite, b.bitcast(scaled, i32))
    return b.bitcast(b.or_(sign, magnitude), e.vector(F32, lanes))


def _narrow_f16(e: Emitter, value: Value, lanes: int) -> Value:
    if e.host.converts_f16:
        half = e.b.fptrunc(value, e.vector(_HALF, lanes))
        return e.b.bitcast(half, e.vector(I16, lanes))
    return _narrow_f16_by_bits(e, value, lanes)


def _narrow_f16_by_bits(e: Emitter, value: Value, lanes: int) -> Value:
    """Without instructions for it: normal numbers round as integers, small ones by an addition.

    Adding 0.5 to a number below 2**-14 leaves its f16 fraction in the sum's lowest bits, rounded by
    the addition itself.
    """
    b, i32, i16 = e.b, e.vector(I32, lanes), e.vector(I16, lanes)

    def number(x: int) -> Value:
        return _splat(e, I32, x, lanes)

    bits = b.bitcast(value, i32)
    sign = b.lshr(b.and_(bits, number(0x80000000)), number(16))
    size = b.and_(bits, number(0x7FFFFFFF))
    odd = b.and_(b.lshr(size, number(13)), number(1))
    moved = b.sub(b.add(b.add(size, number(0xFFF)), odd), number(112 << 23))
    normal = b.lshr(moved, number(13))
    small = b.fadd(b.bitcast(size, e.vector(F32, lanes)), e.constant(0.5, lanes))
    denormal = b.sub(b.bitcast(small, i32), number(0x3F000000))
    is_small = b.icmp_unsigned("<", size, number(113 << 23))
    finite = b.select(is_small, denormal, normal)
    too_large = b.icmp_unsigned(">=", size, number(0x477FF000))
    bounded = b.select(too_large, number(0x7C00), finite)
    is_nan = b.icmp_unsigned(">", size, number(0x7F800000))
    result = b.select(is_nan, number(0x7E00), bounded)
    return b.trunc(b.or_(sign, result), i16)


def _to_integer(e: Emitter, value: Value, kind: DType, lanes: int) -> Value:
    """Clip in f64, which holds all limits but those of i64 exactly; NaN becomes the lowest."""
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
