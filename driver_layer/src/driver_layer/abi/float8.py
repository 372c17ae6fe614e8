"""8-bit floats as raw bytes: f8e4m3 (no infinities, at most 448) and f8e5m2 (at most 57344).

f32 is rounded to f16 first, then to f8: both times to the nearest, ties to even, as OpenVINO does.
A value out of range becomes a NaN in f8e4m3, which has no infinity, and an infinity in f8e5m2.

Source: OCP 8-bit floating point specification; the conversion is compared with the real OpenVINO by
``tests/oracle/test_live_float8.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

_SIGN = 0x80


@dataclass(frozen=True, slots=True)
class Float8:
    """One of the two f8 formats.

    Attributes:
        fraction: number of fraction bits.
        bias: exponent bias.
        largest: code of the largest number.
        overflow: code of values out of range.
        nan: code of NaNs that a conversion writes.
    """

    fraction: int
    bias: int
    largest: int
    overflow: int
    nan: int

    @property
    def limit(self) -> float:
        """The largest number."""
        return float(self.magnitudes[self.largest])

    @property
    def magnitudes(self) -> npt.NDArray[np.float32]:
        """Values of the codes without a sign, f32 [128]."""
        codes = np.arange(_SIGN)
        exponent, fraction = codes >> self.fraction, codes & (1 << self.fraction) - 1
        leading = np.where(exponent > 0, 1 << self.fraction, 0)
        scale = np.maximum(exponent, 1) - self.bias - self.fraction
        found = np.ldexp((leading + fraction).astype(np.float32), scale)
        found[self.largest + 1 :] = np.nan
        if self.overflow != self.nan:
            found[self.overflow] = np.inf
        return found


E4M3 = Float8(fraction=3, bias=7, largest=0x7E, overflow=0x7F, nan=0x7F)
E5M2 = Float8(fraction=2, bias=15, largest=0x7B, overflow=0x7C, nan=0x7E)

FORMATS: dict[str, Float8] = {"f8e4m3": E4M3, "f8e5m2": E5M2}
"""The formats by OpenVINO's names of the element types."""


def f8_to_f32(raw: Bytes, kind: Float8) -> npt.NDArray[np.float32]:
    """Widen f8, given as raw bytes, to f32; exact."""
    return _WIDE[kind][raw]


def f32_to_f8(values: npt.NDArray[np.floating], kind: Float8) -> Bytes:
    """Round floats of any type to f8, as raw bytes; a NaN stays a NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        halves = np.ascontiguousarray(values, np.float16)
    return _NARROW[kind][halves.view(np.uint16)]


def _widening(kind: Float8) -> npt.NDArray[np.float32]:
    """The value of each code, f32 [256]."""
    return np.concatenate([kind.magnitudes, -kind.magnitudes])


def _narrowing(kind: Float8) -> Bytes:
    """The code of each f16, by its raw bits, u8 [65536]."""
    with np.errstate(invalid="ignore"):  # some NaNs of f16 are not quiet
        halves = np.arange(1 << 15, dtype=np.uint16).view(np.float16).astype(np.float32)
    known = kind.magnitudes[: kind.largest + 1]
    # One more step beyond the largest number, so that rounding to the largest works as elsewhere.
    steps = np.append(known, 2 * known[-1] - known[-2])
    middles = (steps[:-1] + steps[1:]) / 2
    below = np.searchsorted(middles, halves)  # for a tie, the lower code
    codes = np.where(np.isin(halves, middles) & (below % 2 == 1), below + 1, below)
    codes = np.where(codes > kind.largest, kind.overflow, codes)
    codes = np.where(np.isnan(halves), kind.nan, codes).astype(np.uint8)
    return np.concatenate([codes, codes | np.uint8(_SIGN)])


_WIDE = {kind: _widening(kind) for kind in FORMATS.values()}
_NARROW = {kind: _narrowing(kind) for kind in FORMATS.values()}
