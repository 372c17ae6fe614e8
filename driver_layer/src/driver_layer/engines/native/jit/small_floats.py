"""f16 and f8 conversions in vector code: the host's instructions, or bit operations.

The results for f8 are those of ``abi.float8``. Both types are converted through f16: f8e5m2 is
f16's upper byte, f8e4m3 has other field widths.
"""

from __future__ import annotations

from llvmlite import ir

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.jit.emitter import F32, I8, I16, I32, Emitter, Value

_HALF = ir.HalfType()

_REBIASED = 8
"""Difference of the exponent biases of f16 and f8e4m3."""


def widen_f16(e: Emitter, raw: Value, lanes: int) -> Value:
    """Widen raw f16 to f32, exactly."""
    if e.host.converts_f16:
        half = e.b.bitcast(raw, e.vector(_HALF, lanes))
        return e.b.fpext(half, e.vector(F32, lanes))
    return _widen_f16_by_bits(e, raw, lanes)


def _widen_f16_by_bits(e: Emitter, raw: Value, lanes: int) -> Value:
    """Widen f16 with bit operations: shift exponent and fraction, then scale by 2**112.

    The multiplication normalizes f16's subnormal numbers. Infinities and NaNs, whose exponent is
    all ones, get f32's exponent of all ones.
    """
    b, i32 = e.b, e.vector(I32, lanes)
    wide = b.zext(raw, i32)
    sign = b.shl(b.and_(wide, e.whole(0x8000, lanes)), e.whole(16, lanes))
    rest = b.shl(b.and_(wide, e.whole(0x7FFF, lanes)), e.whole(13, lanes))
    scaled = b.fmul(b.bitcast(rest, e.vector(F32, lanes)), e.constant(2.0**112, lanes))
    special = b.icmp_unsigned(">=", rest, e.whole(0x0F800000, lanes))
    infinite = b.or_(rest, e.whole(0x7F800000, lanes))
    magnitude = b.select(special, infinite, b.bitcast(scaled, i32))
    return b.bitcast(b.or_(sign, magnitude), e.vector(F32, lanes))


def narrow_f16(e: Emitter, value: Value, lanes: int) -> Value:
    """Round f32 to raw f16; NaN stays NaN."""
    if e.host.converts_f16:
        half = e.b.fptrunc(value, e.vector(_HALF, lanes))
        return e.b.bitcast(half, e.vector(I16, lanes))
    return _narrow_f16_by_bits(e, value, lanes)


def _narrow_f16_by_bits(e: Emitter, value: Value, lanes: int) -> Value:
    """Narrow f32 with bit operations: round normal numbers as integers, small ones by an addition.

    Adding 0.5 to a number below 2**-14 places its f16 fraction in the sum's lowest bits; the
    addition rounds it.
    """
    b, i32, i16 = e.b, e.vector(I32, lanes), e.vector(I16, lanes)
    bits = b.bitcast(value, i32)
    sign = b.lshr(b.and_(bits, e.whole(0x80000000, lanes)), e.whole(16, lanes))
    size = b.and_(bits, e.whole(0x7FFFFFFF, lanes))
    odd = b.and_(b.lshr(size, e.whole(13, lanes)), e.whole(1, lanes))
    moved = b.sub(b.add(b.add(size, e.whole(0xFFF, lanes)), odd), e.whole(112 << 23, lanes))
    normal = b.lshr(moved, e.whole(13, lanes))
    small = b.fadd(b.bitcast(size, e.vector(F32, lanes)), e.constant(0.5, lanes))
    denormal = b.sub(b.bitcast(small, i32), e.whole(0x3F000000, lanes))
    is_small = b.icmp_unsigned("<", size, e.whole(113 << 23, lanes))
    finite = b.select(is_small, denormal, normal)
    too_large = b.icmp_unsigned(">=", size, e.whole(0x477FF000, lanes))
    bounded = b.select(too_large, e.whole(0x7C00, lanes), finite)
    is_nan = b.icmp_unsigned(">", size, e.whole(0x7F800000, lanes))
    result = b.select(is_nan, e.whole(0x7E00, lanes), bounded)
    return b.trunc(b.or_(sign, result), i16)


def widen_f8(e: Emitter, raw: Value, kind: DType, lanes: int) -> Value:
    """Widen raw f8 to f32, exactly."""
    b = e.b
    wide = b.zext(raw, e.vector(I32, lanes))
    if kind is DType.F8E5M2:
        return widen_f16(e, _half(e, b.shl(wide, e.whole(8, lanes)), lanes), lanes)
    sign = b.shl(b.and_(wide, e.whole(0x80, lanes)), e.whole(8, lanes))
    size = b.and_(wide, e.whole(0x7F, lanes))
    small = widen_f16(e, _half(e, b.or_(sign, b.shl(size, e.whole(7, lanes))), lanes), lanes)
    number = b.fmul(small, e.constant(2.0**_REBIASED, lanes))
    is_nan = b.icmp_unsigned("==", size, e.whole(0x7F, lanes))
    return b.select(is_nan, e.constant(float("nan"), lanes), number)


def narrow_f8(e: Emitter, value: Value, kind: DType, lanes: int) -> Value:
    """Round f32 to f16, then to raw f8; NaN stays NaN."""
    b = e.b
    half = b.zext(narrow_f16(e, value, lanes), e.vector(I32, lanes))
    sign = b.lshr(b.and_(half, e.whole(0x8000, lanes)), e.whole(8, lanes))
    size = b.and_(half, e.whole(0x7FFF, lanes))
    is_nan = b.icmp_unsigned(">", size, e.whole(0x7C00, lanes))
    if kind is DType.F8E5M2:
        code, nan = _without(e, size, 8, lanes), 0x7E
    else:
        code, nan = _e4m3(e, size, lanes), 0x7F
    code = b.select(is_nan, e.whole(nan, lanes), code)
    return b.trunc(b.or_(sign, code), e.vector(I8, lanes))


def rounded(e: Emitter, value: Value, kind: DType) -> Value:
    """Round an f32 value or vector to f8 and widen the result to f32."""
    lanes = getattr(value.type, "count", 1)
    return widen_f8(e, narrow_f8(e, value, kind, lanes), kind, lanes)


def _e4m3(e: Emitter, size: Value, lanes: int) -> Value:
    """Return the f8e4m3 code of an f16 magnitude: normal numbers round as integers.

    Small ones round by an addition: in a sum with 2**14, the lowest bit is 2**-9, the step of the
    smallest f8e4m3.
    """
    b = e.b
    moved = b.sub(size, e.whole(_REBIASED << 10, lanes))
    normal = _without(e, moved, 7, lanes)
    large = b.icmp_unsigned(">", normal, e.whole(0x7F, lanes))
    bounded = b.select(large, e.whole(0x7F, lanes), normal)
    total = b.fadd(widen_f16(e, _half(e, size, lanes), lanes), e.constant(2.0**14, lanes))
    steps = b.and_(b.bitcast(total, e.vector(I32, lanes)), e.whole(0xFF, lanes))
    is_small = b.icmp_unsigned("<", size, e.whole(_REBIASED + 1 << 10, lanes))
    return b.select(is_small, steps, bounded)


def _without(e: Emitter, value: Value, count: int, lanes: int) -> Value:
    """Drop the lowest bits, rounding to nearest, ties to even."""
    b = e.b
    odd = b.and_(b.lshr(value, e.whole(count, lanes)), e.whole(1, lanes))
    below = e.whole((1 << count - 1) - 1, lanes)
    return b.lshr(b.add(b.add(value, below), odd), e.whole(count, lanes))


def _half(e: Emitter, value: Value, lanes: int) -> Value:
    return e.b.trunc(value, e.vector(I16, lanes))
