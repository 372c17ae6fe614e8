"""Fixed-point activations, for multiplication by byte dot products.

Numbers with a common unit, a power of two, are rounded to integer multiples of it. An integer is
split into signed bytes, its digits: the lowest has weight 1, the next weight 256, and so on.
Products of digits with bytes are exact. Rounding is exact for numbers with few bits that are not
much smaller than the largest with the same unit. The rounding errors are added up: if they exceed
the error of f32 sums, or if a number is not finite, kernels with float arithmetic compute the row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from llvmlite import ir

from driver_layer.engines.native.jit.emitter import F32, I8, I32, I64, Emitter, Value

_LOSS = 2.0**-18
"""Maximum rounding error, relative to the sum of all magnitudes except the largest."""

_EXPONENT = 0x7F800000
_LEAST_EXPONENT = 40 << 23
"""Lower bound for the exponent of the largest number, so that the scale stays finite."""

Store = Callable[[Value, list[Value]], None]
"""Accepts a chunk's first index, an i64, and its digits, the lowest first."""


class FixedRow:
    """A row of activations to round.

    Args:
        e: emitter of the kernel.
        row: address of f32 numbers, aligned to 64 bytes.
        digits: digits of an integer; two bits are reserved for the sign and the digits' carries.
        chunk: numbers to round at a time.
    """

    def __init__(self, e: Emitter, row: Value, digits: int, chunk: int) -> None:
        self.e, self.b = e, e.b
        self._row, self._digits, self._chunk = row, digits, chunk
        self._largest = e.variable(I32(0))
        self._total, self._lost = e.variable(F32(0)), e.variable(e.zero(e.lanes))

    def round(self, begin: Value, end: Value, store: Store) -> Value:
        """Round complete chunks of numbers to multiples of a unit; return the unit, an f32."""
        e, b = self.e, self.b
        largest = self._survey(begin, end)
        exponent = b.and_(largest, I32(_EXPONENT))
        tiny = b.icmp_unsigned("<", exponent, I32(_LEAST_EXPONENT))
        exponent = b.select(tiny, I32(_LEAST_EXPONENT), exponent)
        # The largest is below 2 ** bits units, and the highest digit below 64.
        bits = 8 * self._digits - 2
        scale = b.bitcast(b.sub(I32((2 * 127 + bits - 1) << 23), exponent), F32)
        unit = b.bitcast(b.sub(exponent, I32((bits - 1) << 23)), F32)
        with e.loop(begin, end, self._chunk) as k:
            store(k, self._rounded(k, scale, unit))
        return unit

    def usable(self) -> Value:
        """Return whether the rounding is exact enough, as an i1.

        The error of a number that is not finite is NaN, which fails the comparison.
        """
        e, b = self.e, self.b
        lost = e.reduce(self._lost.get(), b.fadd)
        others = b.fsub(self._total.get(), b.bitcast(self._largest.get(), F32))
        return b.fcmp_ordered("<=", lost, b.fmul(others, F32(_LOSS)))

    def _survey(self, begin: Value, end: Value) -> Value:
        """Return the bits of the largest magnitude, and add all numbers to the totals.

        Nonnegative floats are ordered like their bits; infinities and NaNs are above all others.
        """
        e, b, lanes = self.e, self.b, self.e.lanes
        words = ir.VectorType(I32, lanes)
        larger = partial(e.intrinsic, "llvm.umax")
        largest, total = e.variable(e.splat(I32(0), lanes)), e.variable(e.zero(lanes))
        with e.loop(begin, end, lanes) as k:
            bits = e.load(e.at(self._row, b.mul(k, I64(4))), I32, lanes)
            size = b.and_(bits, e.splat(I32(0x7FFFFFFF), lanes))
            largest.set(e.intrinsic("llvm.umax", largest.get(), size, result=words))
            total.set(b.fadd(total.get(), b.bitcast(size, ir.VectorType(F32, lanes))))
        found = e.reduce(largest.get(), larger)
        self._largest.set(larger(self._largest.get(), found))
        self._total.set(b.fadd(self._total.get(), e.reduce(total.get(), b.fadd)))
        return found

    def _rounded(self, k: Value, scale: Value, unit: Value) -> list[Value]:
        """Return the digits of a chunk."""
        e, b, count = self.e, self.b, self._chunk
        numbers = e.load(e.at(self._row, b.mul(k, I64(4))), F32, count)
        scaled = b.fmul(numbers, e.splat(scale, count))
        rounded = e.intrinsic("llvm.rint", scaled)
        self._account(b.fsub(scaled, rounded), unit)
        whole = b.fptosi(rounded, ir.VectorType(I32, count))
        # After adding 128 to each digit except the highest, the bytes of an integer are its digits.
        bias = e.splat(I32(sum(128 << 8 * i for i in range(self._digits - 1))), count)
        digits = b.xor(b.add(whole, bias), bias)
        return [
            b.trunc(b.lshr(digits, e.splat(I32(8 * i), count)), ir.VectorType(I8, count))
            for i in range(self._digits)
        ]

    def _account(self, lost: Value, unit: Value) -> None:
        e, lanes = self.e, self.e.lanes
        nothing = ir.Constant(lost.type, ir.Undefined)
        for first in range(0, self._chunk, lanes):
            part = e.lanes_of(lost, nothing, range(first, first + lanes))
            size = e.intrinsic("llvm.fabs", part)
            self._lost.set(e.fma(size, e.splat(unit, lanes), self._lost.get()))
