"""The cost of SHAVE programs.

    cycles = entry + rows * (max(loads and stores, arithmetic) / derates + 25 * reductions)

This is the public model's heuristic for NPU 5, used for all generations with their own lanes and
entry cycles. The public model has a table of arithmetic and memory operations per element; here
they are counted in the program itself.

Assumptions: each computing instruction is one operation (the public table has 2 for swish, 4 for
gelu); each row is padded to complete vectors, where the public model doubles the time of unaligned
rows; the rows of a call are distributed over all SHAVEs of the tile; f32 takes twice as long as
f16, and arithmetic is in f32 if any window is wider than 16 bits.

Source: docs/reference/npu.md#shave-cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.abi.platforms import Platform
from driver_layer.abi.shave import REDUCTIONS, Form, Instruction, Op

BANDWIDTH_DERATE = 0.7
"""The share of the lanes that memory bandwidth allows (V)."""

CODE_DERATE = 0.8
"""The share of the lanes that compiled code utilizes (V)."""

CYCLES_PER_REDUCTION = 25
"""Scalar cycles per row and reduction (V has 50 for softmax, which has two reductions)."""

_LANE_BITS = 16
_WIDE_BITS = 32


class KernelCounts(NamedTuple):
    """Operation counts of one call of a program."""

    rows: int
    """Number of grid points; the program runs once for each."""
    memory: tuple[tuple[int, int], ...]
    """Columns and bits per column of each load and store."""
    arithmetic: tuple[int, ...]
    """Columns of each computing instruction."""
    reductions: int

    @property
    def nbytes(self) -> int:
        """Number of bytes loaded and stored."""
        return self.rows * sum(columns * bits for columns, bits in self.memory) // 8


def kernel_work(
    program: Sequence[Instruction], rows: int, windows: Sequence[tuple[int, str]]
) -> KernelCounts:
    """Count the operations of one call of a program.

    Constants do not count: they are computed once, not for each row.

    Args:
        program: a verified program.
        rows: number of grid points.
        windows: columns (1 if one is repeated) and element type of each window.
    """
    widest = max((columns for columns, _ in windows), default=1)
    registers: dict[int, int] = {}
    memory: list[tuple[int, int]] = []
    arithmetic: list[int] = []
    for i in program:
        if i.form in (Form.DST_WINDOW, Form.WINDOW_A):
            columns, element = windows[i.window]
            memory.append((columns, ELEMENT_TYPES[element].bits))
            if i.form is Form.DST_WINDOW:
                registers[i.dst] = columns
        elif i.op in (Op.IMM, Op.IOTA):
            registers[i.dst] = 1 if i.op is Op.IMM else widest
        elif i.op is not Op.END:
            columns = max(registers[source] for source in i.sources)
            arithmetic.append(columns)
            registers[i.dst] = 1 if i.op in REDUCTIONS else columns
    reductions = sum(i.op in REDUCTIONS for i in program)
    return KernelCounts(rows, tuple(memory), tuple(arithmetic), reductions)


def shave_ns(platform: Platform, work: KernelCounts) -> float:
    """Return the duration of one call on the SHAVEs of one tile, in ns."""
    wide = any(bits > _LANE_BITS for _, bits in work.memory)
    element = _WIDE_BITS if wide else _LANE_BITS
    memory = sum(_vectors(platform, columns, bits) for columns, bits in work.memory)
    arithmetic = sum(_vectors(platform, columns, element) for columns in work.arithmetic)
    row = max(memory, arithmetic) / (BANDWIDTH_DERATE * CODE_DERATE)
    row += CYCLES_PER_REDUCTION * work.reductions
    rows = -(-work.rows // platform.shaves_per_tile)
    return (platform.shave_entry_cycles + rows * row) * 1000 / platform.cmx_mhz


def _vectors(platform: Platform, columns: int, bits: int) -> int:
    """Return the number of vectors of a row, rounded up; each takes one cycle."""
    return -(-columns * bits // (_LANE_BITS * platform.shave_lanes))
