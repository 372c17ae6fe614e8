"""Properties of a workload that select its kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from driver_layer.abi.dtypes import BY_CODE, ELEMENT_TYPES, DType
from driver_layer.abi.tasks import DpuFlag
from driver_layer.abi.workloads import BYTES as BYTES
from driver_layer.abi.workloads import FLOATS as FLOATS
from driver_layer.abi.workloads import NIBBLES as NIBBLES
from driver_layer.engines.native.jit.kernels import KernelSpec

SIZES = {kind.code: kind.storage.itemsize for kind in ELEMENT_TYPES.values()}
"""Bytes of a storage element, which holds two elements of 4-bit types."""

FEW_ROWS = 8
"""Maximum rows that are few on every host. Workloads of more rows may be merged."""

EXACT_ROWS = 16
"""Maximum rows of kernels that are written for their exact number."""

MANY_ROWS = EXACT_ROWS + 1
"""Class of all m above ``EXACT_ROWS``."""

_MOST_ALIGNED = 128


class WeightLayout(Enum):
    """Dimension along which weights are contiguous."""

    K = "k"
    N = "n"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class MatmulProblem:
    """Properties that select code; all others are run-time arguments."""

    act: DType
    weight: DType
    out: DType
    scale: DType
    """UNSET if there are no scales."""
    zero: DType
    """UNSET if there are no zero points."""
    row_scales: bool
    accumulate: bool
    layout: WeightLayout
    rows: int
    """m up to EXACT_ROWS, else MANY_ROWS."""
    group: int
    """0 for one group; else the largest power of two, up to 128, that divides the group size."""
    common_scales: bool = False
    """True if each k has one scale that all columns share, as rows of an 8-bit V cache have;
    ``group`` is then 0."""

    @classmethod
    def of(cls, registers: Any, rows: int) -> MatmulProblem:
        """Describe a workload that the reference engine accepts.

        Args:
            registers: a DPU_REGISTERS record.
            rows: number of rows to compute: a variant's m, or the workload's.
        """
        kind = {name: BY_CODE[int(registers[f"{name}_type"])] for name in ("act", "weight", "out")}
        tables = {name: DType(int(registers[f"{name}_type"])) for name in ("scale", "zero")}
        common = _has_common_scales(registers)
        size = kind["weight"].storage.itemsize
        return cls(
            act=kind["act"].code,
            weight=kind["weight"].code,
            out=kind["out"].code,
            scale=tables["scale"],
            zero=tables["zero"],
            row_scales=kind["act"].code in BYTES and bool(registers["act_scale_address"]),
            accumulate=bool(int(registers["flags"]) & DpuFlag.ACCUMULATE),
            layout=_layout(registers["weight_strides"], size, kind["weight"].code in NIBBLES),
            rows=min(rows, MANY_ROWS),
            group=0 if common else _group(int(registers["group"]), int(registers["k"])),
            common_scales=common,
        )

    @property
    def column_scales(self) -> bool:
        """True if columns have scales of their own, one for each group."""
        return self.scale is not DType.UNSET and not self.common_scales

    @property
    def has_groups(self) -> bool:
        """True if tables have several entries along k."""
        return bool(self.group) or self.common_scales

    def nibbles_in_lane(self, lanes: int) -> int:
        """Return the number of 4-bit weights in a lane, as groups allow; 0 if less than two."""
        if self.group == 0:
            return 8
        return next((count for count in (8, 4, 2) if self.group % (lanes * count) == 0), 0)

    def passes(self, most: int) -> tuple[int, int]:
        """Return the number of passes over rows, at most ``most`` at a time, and rows of a pass."""
        count = -(-self.rows // most)
        return count, -(-self.rows // count)

    @property
    def key(self) -> str:
        """Identifier of the problem in kernels' keys."""
        group = "k" if self.common_scales else self.group
        tables = f"{self.scale.name}.{self.zero.name}.{group}"
        flags = f"{self.row_scales:d}{self.accumulate:d}"
        types = f"{self.act.name}.{self.weight.name}.{self.out.name}"
        return f"{types} {tables} {flags} {self.layout.value} {self.rows}"


@dataclass(frozen=True, slots=True)
class MatmulKernel:
    """A kernel for a problem."""

    spec: KernelSpec
    scratch: Callable[[int, int, int], int]
    """Returns the bytes of scratch for sizes (m, n, k); monotonic in each size."""
    keeps_weights: Callable[[int, int, int], bool] = lambda n, k, group: False
    """Returns whether a ``Reuse`` saves work for sizes (n, k, group) and a batch of one."""
    columns: int = 192
    """Preferred number of columns of a merged call."""
    takes_parts: bool = False
    """True if weights may be stored in several parts along k, see ``Word.PARTS``."""


def _layout(strides: Any, size: int, packed: bool) -> WeightLayout:
    if int(strides[2]) == size:
        return WeightLayout.K
    return WeightLayout.N if int(strides[1]) == size and not packed else WeightLayout.OTHER


def _has_common_scales(registers: Any) -> bool:
    act, weight, scale, zero = (
        int(registers[f"{name}_type"]) for name in ("act", "weight", "scale", "zero")
    )
    alone = scale != DType.UNSET and zero == DType.UNSET and weight not in NIBBLES
    shared = (
        int(registers["group"]) == 1 < int(registers["k"]) and not registers["scale_strides"][0]
    )
    return alone and shared and act in FLOATS


def _group(group: int, k: int) -> int:
    if group == 0 or group >= k:
        return 0
    return min(group & -group, _MOST_ALIGNED)
