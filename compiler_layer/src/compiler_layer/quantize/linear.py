"""Linear quantization of blocks of numbers: w ≈ (q - zero point) · scale.

A block is an array [groups, size, inner]: each of ``groups · inner`` vectors of ``size`` numbers
has its own scale, and, if unsigned, a zero point. Scales are stored as f16, rounded away from
zero, so that no number is clipped: the error is at most half a scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Halves = npt.NDArray[np.float16]
Integers = npt.NDArray[np.int8] | npt.NDArray[np.uint8]

BITS = {"i8": 8, "u8": 8, "i4": 4, "u4": 4}
"""Bits of the element types of quantized weights; the signed types have no zero point."""


@dataclass(frozen=True, slots=True)
class Quantized:
    """Quantized block; each 4-bit number occupies a byte."""

    values: Integers
    """Array i8 or u8 [groups, size, inner]."""
    scale: Halves
    """Array [groups, 1, inner]; negative where that uses the range better."""
    zero_point: npt.NDArray[np.uint8] | None
    """Array [groups, 1, inner]; None for signed values."""


def quantize(weights: Floats, element: str) -> Quantized:
    """Quantize a block.

    Args:
        weights: f32 [groups, size, inner].
        element: i8, u8, i4 or u4.

    Raises:
        ValueError: a weight is not finite, or a scale exceeds f16.
    """
    low, high = weights.min(axis=1, keepdims=True), weights.max(axis=1, keepdims=True)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError("a weight is infinite or NaN")
    if element.startswith("i"):
        return _symmetric(weights, low, high, BITS[element])
    return _asymmetric(weights, low, high, BITS[element])


def dequantize(block: Quantized) -> Floats:
    """Return the numbers that a block represents, f32."""
    values = block.values.astype(np.float32)
    if block.zero_point is not None:
        values -= block.zero_point.astype(np.float32)
    values *= block.scale.astype(np.float32)
    return values


def _symmetric(weights: Floats, low: Floats, high: Floats, bits: int) -> Quantized:
    """Quantize to -2^(bits-1) … 2^(bits-1) - 1; the largest weight's side has the extra step.

    The scale is negative if the largest weight is positive; weights of the other sign must not
    exceed their last step by more than half a step.
    """
    half = 1 << (bits - 1)
    larger, smaller = np.maximum(-low, high), np.minimum(-low, high)
    size = np.maximum(larger / np.float32(half), smaller / np.float32(half - 0.5))
    scale = stored_scale(size)
    scale = np.where(high > -low, -scale, scale)
    steps = weights * _inverse(scale)
    np.rint(steps, out=steps)
    np.clip(steps, -half, half - 1, out=steps)
    return Quantized(steps.astype(np.int8), scale, None)


def _asymmetric(weights: Floats, low: Floats, high: Floats, bits: int) -> Quantized:
    """Quantize the range of the weights, extended to zero, to 0 … 2^bits - 1."""
    last = (1 << bits) - 1
    low, high = np.minimum(low, 0), np.maximum(high, 0)
    with np.errstate(over="ignore"):
        scale = stored_scale((high - low) / np.float32(last))
    inverse = _inverse(scale)
    zero_point = np.rint(-low * inverse)
    steps = weights * inverse
    np.rint(steps, out=steps)
    steps += zero_point
    np.clip(steps, 0, last, out=steps)
    return Quantized(steps.astype(np.uint8), scale, zero_point.astype(np.uint8))


def stored_scale(scale: Floats) -> Halves:
    """Return the smallest f16 that is not below each scale; 1 for a scale of 0."""
    with np.errstate(over="ignore", under="ignore"):
        stored = scale.astype(np.float16)
        stored = np.where(stored < scale, np.nextafter(stored, np.float16(np.inf)), stored)
    if not np.isfinite(stored).all():
        raise ValueError("a weight is so large that its scale exceeds f16")
    return np.where(stored == 0, np.float16(1), stored)


def _inverse(scale: Halves) -> Floats:
    return np.float32(1) / scale.astype(np.float32)
