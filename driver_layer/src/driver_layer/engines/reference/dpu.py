"""DPU in numpy: matmuls with f32 accumulation, or exact ones of integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from driver_layer.abi.dtypes import BY_CODE, FLOAT8, DType, narrowed, unpack_4bit, widened
from driver_layer.abi.layout import RecordArray
from driver_layer.abi.tasks import DPU_REGISTERS, DpuFlag
from driver_layer.abi.workloads import BYTES, FLOATS, NIBBLES, find_problem
from driver_layer.engines.contract import Run
from driver_layer.errors import DeviceFault
from driver_layer.npu.bus import Bus

F32 = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Operand:
    """A strided tensor in CMX; 4-bit elements are stored two to a byte."""

    kind: DType
    values: npt.NDArray[Any]

    def read(self, *parts: slice) -> F32:
        """Widen a slice to f32."""
        raw = self.values[parts]
        if self.kind in NIBBLES:
            return unpack_4bit(raw, signed=self.kind is DType.I4).astype(np.float32)
        return widened(self.kind, raw)

    def write(self, result: F32, *parts: slice) -> None:
        """Round f32 to the operand's type and store the values."""
        self.values[parts] = narrowed(self.kind, result)


class _Reader:
    """Reader of the operands of one register image, which are in CMX."""

    def __init__(self, registers: Any, bus: Bus) -> None:
        self._registers = registers
        self._bus = bus

    def operand(
        self, name: str, shape: tuple[int, ...], strides: Sequence[int], code: int | None = None
    ) -> _Operand:
        """Return an operand; its type is in the registers if not given."""
        if code is None:
            code = int(self._registers[f"{name}_type"])
        kind = BY_CODE[code]
        steps = [int(stride) for stride in strides]
        reach = sum((dim - 1) * step for dim, step in zip(shape, steps, strict=True))
        address = int(self._registers[f"{name}_address"])
        data = self._bus.cmx.view(address, reach + kind.storage.itemsize)
        return _Operand(kind.code, np.ndarray(shape, kind.storage, data, strides=steps))

    def table(self, name: str, rows: int, groups: int) -> _Operand | None:
        """Return the table of scales or zero points; None if the registers name none."""
        if int(self._registers[f"{name}_type"]) == DType.UNSET:
            return None
        return self.operand(name, (rows, groups), self._registers[f"{name}_strides"])


@dataclass(frozen=True, slots=True)
class _Weights:
    """Stored weights, with the scales and zero points that dequantize them."""

    stored: _Operand
    scales: _Operand | None
    zeros: _Operand | None
    group: int
    k: int

    def read(self, cols: slice) -> F32:
        """Return weights [batch, columns, k] in f32."""
        values = self.centred(cols)
        return values if self.scales is None else values * self._spread(self.scales, cols)

    def centred(self, cols: slice) -> F32:
        """Return stored integers minus their zero points."""
        values = self.stored.read(slice(None), cols)[..., : self.k]
        return values if self.zeros is None else values - self._spread(self.zeros, cols)

    def column_scales(self, cols: slice) -> F32:
        """Return one scale for each column; there must be only one quantization group."""
        return np.ones(1, np.float32) if self.scales is None else self.scales.read(cols)[:, 0]

    def _spread(self, table: _Operand, cols: slice) -> F32:
        """Repeat the table entry of each group for its elements of k."""
        return np.repeat(table.read(cols), self.group, -1)[:, : self.k]


def check_workloads(registers: RecordArray, tile: int, bus: Bus) -> None:
    """Check the workloads of a tile by the rules of ``abi.workloads``.

    Raises:
        DeviceFault: a workload breaks a rule; ``task`` is its index.
    """
    tiles = np.full(len(registers), tile, np.int64)
    problem = find_problem(registers, tiles, range(bus.cmx.tile_bytes))
    if problem is not None:
        raise DeviceFault(problem.message, "DPU", problem.workload, problem.address)


def prepare_dpu(registers: Any, variants: Sequence[Any], tile: int, bus: Bus) -> Run:
    """Prepare a workload; see ``engines.contract.Engines.dpu``."""
    check_workloads(np.array([registers], DPU_REGISTERS), tile, bus)
    return prepare_checked(registers, variants, tile, bus)


def prepare_checked(registers: Any, variants: Sequence[Any], tile: int, bus: Bus) -> Run:
    """Prepare a workload that ``check_workloads`` has checked."""
    del tile  # the addresses name it
    batch, m, n, k = (int(registers[dim]) for dim in ("batch", "m", "n", "k"))
    reader = _Reader(registers, bus)
    act = reader.operand("act", (batch, m, k), registers["act_strides"])
    weights = _weights(reader, registers, (batch, n, k))
    out = reader.operand("out", (batch, m, n), registers["out_strides"])
    accumulate = bool(int(registers["flags"]) & DpuFlag.ACCUMULATE)
    if accumulate and out.kind is not DType.FP32:
        raise DeviceFault("a workload accumulates into a type other than f32")
    product, zero = _floats(act, weights), int(registers["act_zero"])
    if act.kind in BYTES:
        product = _integers(act, zero, weights, _row_scales(reader, registers, m))
    elif zero:
        raise DeviceFault("a zero point for activations that are not integers")
    alpha = np.float32(registers["alpha"])
    parts = [_part(variant, m, n) for variant in variants]
    return _run(product, out, parts, alpha, accumulate)


def _weights(reader: _Reader, registers: Any, shape: tuple[int, int, int]) -> _Weights:
    batch, n, k = shape
    packed = int(registers["weight_type"]) in NIBBLES
    along = -(-k // 2) if packed else k
    stored = reader.operand("weight", (batch, n, along), registers["weight_strides"])
    group = min(int(registers["group"]) or k, k)
    groups = -(-k // group)
    scales, zeros = (reader.table(name, n, groups) for name in ("scale", "zero"))
    if stored.kind in FLOATS and (scales is not None or zeros is not None):
        raise DeviceFault("scales or zero points for weights that are not integers")
    if stored.kind in FLOAT8 and zeros is not None:
        raise DeviceFault("zero points for weights that are not integers")
    return _Weights(stored, scales, zeros, group, k)


def _row_scales(reader: _Reader, registers: Any, m: int) -> _Operand | None:
    if not int(registers["act_scale_address"]):
        return None
    return reader.operand("act_scale", (m,), [registers["act_scale_stride"]], DType.FP32)


def _part(variant: Any, m: int, n: int) -> tuple[slice, slice]:
    rows = slice(int(variant["m_begin"]), int(variant["m_end"]))
    cols = slice(int(variant["n_begin"]), int(variant["n_end"]))
    if not (0 <= rows.start < rows.stop <= m and 0 <= cols.start < cols.stop <= n):
        raise DeviceFault(f"a variant of rows {rows} and columns {cols} in an output of {m} x {n}")
    return rows, cols


_Product = Callable[[slice, slice], F32]
"""Computes a region of the output from its rows and columns."""


def _floats(act: _Operand, weights: _Weights) -> _Product:
    def product(rows: slice, cols: slice) -> F32:
        left = act.read(slice(None), rows)
        return np.matmul(left, weights.read(cols).transpose(0, 2, 1))

    return product


def _integers(act: _Operand, zero: int, weights: _Weights, row_scales: _Operand | None) -> _Product:
    """Return exact sums of integers: f64 represents every i32."""
    floats = weights.stored.kind in FLOATS or weights.stored.kind in FLOAT8
    if floats or weights.group < weights.k:
        raise DeviceFault("integer activations need integer weights with one quantization group")

    def product(rows: slice, cols: slice) -> F32:
        left = act.read(slice(None), rows).astype(np.float64) - zero
        right = weights.centred(cols).astype(np.float64)
        sums = np.matmul(left, right.transpose(0, 2, 1)).astype(np.float32)
        sums *= weights.column_scales(cols)
        return sums if row_scales is None else sums * row_scales.read(rows)[:, None]

    return product


def _run(
    product: _Product,
    out: _Operand,
    parts: list[tuple[slice, slice]],
    alpha: np.float32,
    accumulate: bool,
) -> Callable[[], None]:
    every = slice(None)

    def run() -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            for rows, cols in parts:
                result = product(rows, cols)
                if alpha != 1:
                    result = result * alpha
                if accumulate:
                    result = result + out.read(every, rows, cols)
                out.write(result, every, rows, cols)

    return run
