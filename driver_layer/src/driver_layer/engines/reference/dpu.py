"""The DPU in numpy: matrix products with f32 accumulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driver_layer.abi.dtypes import DType, bf16_to_f32, f32_to_bf16
from driver_layer.abi.platforms import TILE_SELECT_SHIFT
from driver_layer.abi.tasks import DPU_MAX_DIM, DpuFlag, DpuWorkload
from driver_layer.engines.contract import Run
from driver_layer.errors import DeviceFault
from driver_layer.npu.bus import Bus

F32 = npt.NDArray[np.float32]

_STORAGE: dict[int, str] = {DType.FP32: "<f4", DType.FP16: "<f2", DType.BFP16: "<u2"}
"""Operand types of the DPU."""


@dataclass(frozen=True, slots=True)
class _Operand:
    """A strided matrix, or a batch of them, in CMX."""

    kind: DType
    values: npt.NDArray[Any]

    def read(self, *parts: slice) -> F32:
        """Widen a part to f32."""
        raw = self.values[parts]
        return bf16_to_f32(raw) if self.kind is DType.BFP16 else raw.astype(np.float32)

    def write(self, result: F32, *parts: slice) -> None:
        """Round f32 to the operand's type."""
        raw = f32_to_bf16(result) if self.kind is DType.BFP16 else result
        self.values[parts] = raw


def _operand(registers: Any, name: str, shape: tuple[int, ...], tile: int, bus: Bus) -> _Operand:
    address = int(registers[f"{name}_address"])
    code = int(registers[f"{name}_type"])
    storage = _STORAGE.get(code)
    if storage is None:
        raise DeviceFault(f"the DPU has no operands of type {code}", address=address)
    strides = tuple(int(s) for s in registers[f"{name}_strides"])
    size = np.dtype(storage).itemsize
    if not address >> TILE_SELECT_SHIFT & 1 << tile:
        raise DeviceFault(f"{name} is not in the CMX of tile {tile}", address=address)
    extent = sum((dim - 1) * stride for dim, stride in zip(shape, strides, strict=True)) + size
    data = bus.cmx.view(address, extent)
    return _Operand(DType(code), np.ndarray(shape, storage, data, strides=strides))


def prepare_dpu(registers: Any, variants: Sequence[Any], tile: int, bus: Bus) -> Run:
    """Prepare a workload; see ``engines.contract.Engines.dpu``."""
    if registers["workload"] != DpuWorkload.MATMUL:
        raise DeviceFault(f"unknown DPU workload {registers['workload']}")
    batch, m, n, k = (int(registers[dim]) for dim in ("batch", "m", "n", "k"))
    if not all(0 < dim <= DPU_MAX_DIM for dim in (batch, m, n, k)):
        raise DeviceFault(f"a workload of {batch} x {m} x {n} x {k}")
    act = _operand(registers, "act", (batch, m, k), tile, bus)
    weight = _operand(registers, "weight", (batch, n, k), tile, bus)
    out = _operand(registers, "out", (batch, m, n), tile, bus)
    accumulate = bool(int(registers["flags"]) & DpuFlag.ACCUMULATE)
    if accumulate and out.kind is not DType.FP32:
        raise DeviceFault("accumulation into a type other than f32")
    alpha = np.float32(registers["alpha"])
    parts = [_part(variant, m, n) for variant in variants]
    return _matmul(act, weight, out, parts, alpha, accumulate)


def _part(variant: Any, m: int, n: int) -> tuple[slice, slice]:
    rows = slice(int(variant["m_begin"]), int(variant["m_end"]))
    cols = slice(int(variant["n_begin"]), int(variant["n_end"]))
    if not (0 <= rows.start < rows.stop <= m and 0 <= cols.start < cols.stop <= n):
        raise DeviceFault(f"a variant of rows {rows} and columns {cols} in {m} x {n}")
    return rows, cols


def _matmul(
    act: _Operand,
    weight: _Operand,
    out: _Operand,
    parts: list[tuple[slice, slice]],
    alpha: np.float32,
    accumulate: bool,
) -> Callable[[], None]:
    every = slice(None)

    def run() -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, cols in parts:
                left = act.read(every, rows)
                right = weight.read(every, cols)
                result = np.matmul(left, right.transpose(0, 2, 1))
                if alpha != 1:
                    result *= alpha
                if accumulate:
                    result += out.read(every, rows, cols)
                out.write(result, every, rows, cols)

    return run
