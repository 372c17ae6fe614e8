"""f16 conversions in vector code: the host's instructions, or bit operations."""

from __future__ import annotations

from llvmlite import ir

from driver_layer.engines.native.jit.emitter import F32, I16, I32, Emitter, Value

_HALF = ir.HalfType()


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
