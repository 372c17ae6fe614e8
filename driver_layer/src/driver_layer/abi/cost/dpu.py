"""The cost of matmuls.

    ns = max(time to multiply, time to read the operands from CMX)

The cost is ideal: every multiplier works in every cycle, and each operand is read once (A; the
public formula counts repeated reads, but their number is not known).

Source: docs/reference/npu.md#dpu-cost.
"""

from __future__ import annotations

from typing import NamedTuple

from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.abi.platforms import Platform

F16_CYCLES = 2
"""Cycles of 16-bit operands for the work that 8-bit integers do in one cycle (V)."""

F32_CYCLES = 4
"""Cycles of wider operands, as ``F16_CYCLES`` (A: the real DPU does not support them)."""

_ACCUMULATOR_BITS = 32


class MatmulShape(NamedTuple):
    """Matmul of act [batch, m, k] with weight [batch, n, k]; element types are given by name."""

    m: int
    n: int
    k: int
    act: str = "f16"
    weight: str = "f16"
    batch: int = 1
    accumulate: bool = False
    """True if the product is added to the previous values of the output, which is f32."""

    @property
    def macs(self) -> int:
        """Number of multiply-accumulates."""
        return self.batch * self.m * self.n * self.k

    @property
    def read_bytes(self) -> int:
        """Bytes read from CMX."""
        bits = self.m * self.k * _bits(self.act) + self.n * self.k * _bits(self.weight)
        if self.accumulate:
            bits += self.m * self.n * _ACCUMULATOR_BITS
        return -(-self.batch * bits // 8)


def dpu_ns(platform: Platform, work: MatmulShape) -> float:
    """Return the duration of a matmul on one DPU, in ns."""
    multiply = -(-work.macs // platform.macs_per_cycle) * cycles_per_step(work.act, work.weight)
    read = work.read_bytes / (platform.cmx_word_bytes * platform.cmx_read_ports)
    return max(multiply * 1000 / platform.dpu_mhz, read * 1000 / platform.cmx_mhz)


def cycles_per_step(act: str, weight: str) -> int:
    """Return the cycles of ``macs_per_cycle`` multiplications of the operands' types.

    The full rate requires integers of at most 8 bits on both sides: 4-bit weights save bandwidth,
    not arithmetic.
    """
    if all(_bits(name) <= 8 and name[0] in "iu" for name in (act, weight)):
        return 1
    return F16_CYCLES if max(_bits(act), _bits(weight)) <= 16 else F32_CYCLES


def _bits(name: str) -> int:
    return ELEMENT_TYPES[name].bits
