"""Number formats in which kernels multiply.

Operands are packed into 32-bit units along k: one f32, two bf16 or four bytes. In each format, a
step multiplies a vector with the units of several columns by one broadcast unit of a row.
"""

from __future__ import annotations

from enum import Enum

from llvmlite import ir

from driver_layer.abi.dtypes import FLOAT8, DType
from driver_layer.engines.native.dpu.problem import BYTES, FLOATS, MatmulProblem, WeightLayout
from driver_layer.engines.native.jit.emitter import F32, I8, I16, I32, Emitter, Value
from driver_layer.engines.native.jit.host import Host


class NumberFormat(Enum):
    """A number format: name, numbers per unit, and parts that each activation and weight has."""

    F32 = "f32", 1, 1, 1
    """Any types. Weights are scaled when packed."""
    BF16 = "bf16", 2, 1, 1
    """bf16 activations, and weights that are exact in bf16; sums of groups are scaled."""
    HALVES = "halves", 2, 2, 1
    """f16 activations as sums of two bf16, and weights exact in bf16; for tile registers."""
    PAIRS = "pairs", 2, 2, 2
    """f16 activations and weights, both as sums of two bf16."""
    HALVED_WEIGHTS = "halved weights", 2, 1, 2
    """bf16 activations, and f16 weights as sums of two bf16; for tile registers."""
    THIRDS = "thirds", 2, 3, 1
    """Activations times common scales as sums of three bf16, and weights exact in bf16; for tile
    registers."""
    BYTES = "bytes", 4, 1, 1
    """u8 activations times i8 weights, summed in i32; other signs are shifted by 128."""
    WORDS = "words", 2, 1, 1
    """Integers less their zero points, in i16, summed in i32; for hosts without byte dots."""

    @property
    def per_unit(self) -> int:
        """Numbers in a unit."""
        return self.value[1]

    @property
    def act_parts(self) -> int:
        """Number of bf16 whose sum is an activation."""
        return self.value[2]

    @property
    def weight_parts(self) -> int:
        """Number of bf16 whose sum is a weight."""
        return self.value[3]

    @property
    def whole(self) -> bool:
        """True if sums are integers; then the scales of columns are applied to the tile."""
        return self in (NumberFormat.BYTES, NumberFormat.WORDS)

    @property
    def scales_sums(self) -> bool:
        """True if packed weights are not scaled yet."""
        return self is not NumberFormat.F32


def flavour_of(problem: MatmulProblem, host: Host) -> NumberFormat | None:
    """Choose the number format for vectors; None if no format is exact enough."""
    if problem.act in BYTES:
        if problem.zero not in BYTES | {DType.UNSET} or problem.group:
            return None
        quadruples = problem.weight in BYTES and problem.layout is WeightLayout.K
        return NumberFormat.BYTES if quadruples and host.dots_bytes else NumberFormat.WORDS
    if problem.common_scales:
        return NumberFormat.F32
    exact = problem.weight is DType.BFP16 or fits_bf16(problem)
    if host.dots_bf16 and problem.act is DType.BFP16 and exact:
        return NumberFormat.BF16
    return NumberFormat.F32


def tile_flavour_of(problem: MatmulProblem, host: Host) -> NumberFormat | None:
    """Choose the number format for tile registers; None if they support none."""
    if problem.act in BYTES:
        return NumberFormat.BYTES if flavour_of(problem, host) is NumberFormat.BYTES else None
    if problem.act not in (DType.FP16, DType.BFP16):
        return None
    if problem.common_scales:
        return NumberFormat.THIRDS if fits_bf16(problem) else None
    halves = problem.act is DType.FP16
    if problem.weight is DType.BFP16 or fits_bf16(problem):
        return NumberFormat.HALVES if halves else NumberFormat.BF16
    if problem.weight is DType.FP16 and problem.zero is DType.UNSET:
        return NumberFormat.PAIRS if halves else NumberFormat.HALVED_WEIGHTS
    return None


def fits_bf16(problem: MatmulProblem) -> bool:
    """Return whether weights less zero points are exact in bf16: 8-bit floats, integers to 256."""
    if problem.weight in FLOATS:
        return False
    if problem.weight in FLOAT8:
        return problem.zero is DType.UNSET
    return problem.zero in {
        DType.I8: {DType.UNSET, DType.I8},
        DType.U8: {DType.UNSET, DType.U8},
        DType.I4: {DType.UNSET, DType.I8},
        DType.U4: {DType.UNSET, DType.I8, DType.U8},
    }.get(problem.weight, set())


class _BFloat(ir.Type):
    """bf16, which llvmlite lacks."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash(_BFloat)


_PAIRS = ir.VectorType(_BFloat(), 32)


def dot(e: Emitter, flavour: NumberFormat, total: Value, row: Value, columns: Value) -> Value:
    """Add dot products of units; ``row`` and ``columns`` are i32 vectors that hold units."""
    b = e.b
    if flavour is NumberFormat.F32:
        kind = ir.VectorType(F32, e.lanes)
        return e.fma(b.bitcast(row, kind), b.bitcast(columns, kind), total)
    if flavour is NumberFormat.BF16:
        pairs = b.bitcast(row, _PAIRS), b.bitcast(columns, _PAIRS)
        return e.external("llvm.x86.avx512bf16.dpbf16ps.512", total, *pairs, result=total.type)
    if flavour is NumberFormat.WORDS:
        half = e.splat(I32(16), e.lanes)
        lows = [b.ashr(b.shl(units, half), half) for units in (row, columns)]
        highs = [b.ashr(units, half) for units in (row, columns)]
        products = b.mul(lows[0], lows[1]), b.mul(highs[0], highs[1])
        return b.add(total, b.add(*products))
    kind = ir.VectorType(I8, 64)
    operands = b.bitcast(row, kind), b.bitcast(columns, kind)
    return e.external("llvm.x86.avx512.vpdpbusd.512", total, *operands, result=total.type)


def side_by_side(e: Emitter, first: Value, second: Value) -> Value:
    """Concatenate the upper halves of two i32 vectors, lane by lane."""
    kind, lanes = ir.VectorType(I16, 2 * e.lanes), e.lanes
    upper = range(1, 4 * lanes, 2)
    return e.lanes_of(e.b.bitcast(first, kind), e.b.bitcast(second, kind), upper)


def halves_of(e: Emitter, number: Value, guarded: bool) -> tuple[Value, Value]:
    """Split an f16 number, given as f32, into two bf16, returned in the upper halves of i32.

    Args:
        e: emitter of the kernel.
        number: one f32, or a vector of them.
        guarded: True if the other operand may be infinite. A lower part of 0 times an infinity
            would be NaN, so it is replaced by a number that vanishes in sums.
    """
    b = e.b
    lanes = number.type.count if isinstance(number.type, ir.VectorType) else 1
    f32, i32 = e.vector(F32, lanes), e.vector(I32, lanes)

    def splat(value: int) -> Value:
        return e.splat(I32(value), lanes)

    # bf16 holds 8 of the 11 bits. With rounding, the other 3 could have the opposite sign, and both
    # parts times an infinity would be infinities of opposite signs, whose sum is NaN.
    bits = b.bitcast(number, i32)
    upper = b.and_(bits, splat(-0x10000))
    left = b.fsub(number, b.bitcast(upper, f32))
    infinite = b.icmp_signed("==", b.and_(bits, splat(0x7FFFFFFF)), splat(0x7F800000))
    lower = b.select(infinite, e.zero(lanes), left)
    if guarded:
        least = b.or_(b.and_(bits, splat(-0x80000000)), splat(0x00800000))
        is_zero = b.fcmp_ordered("==", number, e.zero(lanes))
        vanishing = b.select(is_zero, e.zero(lanes), b.bitcast(least, f32))
        lower = b.fadd(lower, vanishing)
    return upper, b.bitcast(lower, i32)


def parts_of(e: Emitter, number: Value, count: int, guarded: bool) -> list[Value]:
    """Split an f32 into two or three bf16, as ``halves_of`` does: three are exact for every f32."""
    upper, lower = halves_of(e, number, guarded)
    if count == 2:
        return [upper, lower]
    return [upper, *halves_of(e, e.b.bitcast(lower, number.type), guarded)]


def nothing(e: Emitter, flavour: NumberFormat) -> Value:
    """Return a vector of empty sums."""
    return e.splat(I32(0), e.lanes) if flavour.whole else e.zero(e.lanes)
