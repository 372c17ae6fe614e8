"""What matrix products cost.

    ns = max(time to multiply, time to read the operands from CMX)

It is ideal: every multiplier works in every cycle, and each operand is read once (A; the public
formula counts re-reading, but how often is not known).

Source: fact sheets elf_driver §6.2 and simulators_npu §c.
"""

from __future__ import annotations

from typing import NamedTuple

from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.abi.platforms import Platform

F16_CYCLES = 2
"""Cycles that 16-bit operands take for what takes 8-bit integers one (V)."""

F32_CYCLES = 4
"""As ``F16_CYCLES``, for wider operands (A: the real DPU does not have them)."""

_ACCUMULATOR_BITS = 32


class DpuWork(NamedTuple):
    """Products of act [batch, m, k] with weight [batch, n, k], whose element types go by name."""

    m: int
    n: int
    k: int
    act: str = "f16"
    weight: str = "f16"
    batch: int = 1
    accumulate: bool = False
    """The product is added to what the output, f32, holds."""

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.batch * self.m * self.n * self.k

    @property
    def read_bytes(self) -> int:
        """Bytes that are read from CMX."""
        bits = self.m * self.k * _bits(self.act) + self.n * self.k * _bits(self.weight)
        if self.accumulate:
            bits += self.m * self.n * _ACCUMULATOR_BITS
        return -(-self.batch * bits // 8)


def dpu_ns(platform: Platform, work: DpuWork) -> float:
    """Give the time of a product on one DPU, in ns."""
    multiply = -(-work.macs // platform.macs_per_cycle) * cycles_per_step(work.act, work.weight)
    read = work.read_bytes / (platform.cmx_word_bytes * platform.cmx_read_ports)
    return max(multiply * 1000 / platform.dpu_mhz, read * 1000 / platform.cmx_mhz)


def cycles_per_step(act: str, weight: str) -> int:
    """Give the cycles in which ``macs_per_cycle`` products are made, by the operands' types.

    The full rate needs integers of at most 8 bits on both sides: weights of 4 bits save bandwidth,
    not arithmetic.
    """
    if all(_bits(name) <= 8 and name[0] in "iu" for name in (act, weight)):
        return 1
    return F16_CYCLES if max(_bits(act), _bits(weight)) <= 16 else F32_CYCLES


def _bits(name: str) -> int:
    return ELEMENT_TYPES[name].bits
