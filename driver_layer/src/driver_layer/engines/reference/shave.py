"""SHAVE in numpy: an interpreter that runs each instruction over the whole grid.

A register is an f32 array [grid 0, grid 1, grid 2, columns]; a dimension in which its values
repeat has length 1, so that numpy broadcasts it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from driver_layer.abi.dtypes import BY_CODE, FLOAT8, DType, narrowed, widened
from driver_layer.abi.float8 import E4M3, E5M2, Float8, f8_to_f32, f32_to_f8
from driver_layer.abi.platforms import tile_base, tile_of
from driver_layer.abi.shave import KERNEL_ARGS, MAX_ELEMENTS, WINDOW, Form, Instruction, Op
from driver_layer.abi.special import erf
from driver_layer.engines.contract import Run
from driver_layer.errors import DeviceFault
from driver_layer.npu.bus import Bus

F32 = npt.NDArray[np.float32]
Window = tuple[DType, npt.NDArray[Any]]


_FLOATS = frozenset({DType.FP64, DType.FP32, DType.FP16, DType.BFP16, *FLOAT8})


def _rounded(kind: Float8) -> Callable[[F32], F32]:
    return lambda a: f8_to_f32(f32_to_f8(a, kind), kind)


_OF_ONE: Mapping[Op, Callable[[F32], F32]] = {
    Op.MOV: np.positive,
    Op.NEG: np.negative,
    Op.ABS: np.abs,
    Op.SQRT: np.sqrt,
    Op.RSQRT: lambda a: np.divide(1, np.sqrt(a), dtype=np.float32),
    Op.RCP: lambda a: np.float32(1) / a,
    Op.EXP: np.exp,
    Op.LOG: np.log,
    Op.SIN: np.sin,
    Op.COS: np.cos,
    Op.TANH: np.tanh,
    Op.FLOOR: np.floor,
    Op.ERF: erf,
    Op.RINT: np.rint,
    Op.RE4M3: _rounded(E4M3),
    Op.RE5M2: _rounded(E5M2),
    Op.RSUM: lambda a: a.sum(-1, keepdims=True, dtype=np.float32),
    Op.RMAX: lambda a: a.max(-1, keepdims=True),
    Op.RMIN: lambda a: a.min(-1, keepdims=True),
}

_OF_TWO: Mapping[Op, Callable[[F32, F32], F32]] = {
    Op.ADD: np.add,
    Op.SUB: np.subtract,
    Op.MUL: np.multiply,
    Op.DIV: np.divide,
    Op.MIN: np.minimum,
    Op.MAX: np.maximum,
    Op.POW: np.power,
    Op.CMPEQ: lambda a, b: np.equal(a, b).astype(np.float32),
    Op.CMPLT: lambda a, b: np.less(a, b).astype(np.float32),
    Op.CMPLE: lambda a, b: np.less_equal(a, b).astype(np.float32),
}

_OF_THREE: Mapping[Op, Callable[[F32, F32, F32], F32]] = {
    Op.FMA: lambda a, b, c: a * b + c,
    Op.SEL: lambda a, b, c: np.where(a != 0, b, c),
}

_COMPUTE: Mapping[Op, Callable[..., F32]] = {**_OF_ONE, **_OF_TWO, **_OF_THREE}
"""Implementation of each arithmetic opcode, over its source registers."""


def prepare_shave(program: Sequence[Instruction], args: bytes, tile: int, bus: Bus) -> Run:
    """Prepare a kernel; see ``engines.contract.Engines.shave``."""
    head = np.frombuffer(args, KERNEL_ARGS, 1)[0]
    records = np.frombuffer(args, WINDOW, int(head["window_count"]), KERNEL_ARGS.itemsize)
    grid = tuple(int(dim) for dim in head["grid"])
    windows = [_window(record, grid, tile, bus) for record in records]
    widest = max((view.shape[-1] for _, view in windows), default=1)
    steps = [_step(instruction, windows, widest) for instruction in program]

    def run() -> None:
        registers: dict[int, F32] = {}
        with np.errstate(all="ignore"):
            for step in steps:
                step(registers)

    return run


def _window(record: Any, grid: tuple[int, ...], tile: int, bus: Bus) -> Window:
    address, cols = int(record["address"]), int(record["cols"])
    kind = BY_CODE.get(int(record["type"]))
    if kind is None or kind.bits < 8:
        raise DeviceFault(f"a window of unsupported type {record['type']}", address=address)
    if not 0 < cols * int(np.prod(grid, dtype=object)) <= MAX_ELEMENTS:
        raise DeviceFault(f"a window of {cols} columns over a grid of {grid}", address=address)
    if tile_of(address) != tile_base(tile):
        raise DeviceFault(f"a window is not in the CMX of tile {tile}", address=address)
    strides = (*(int(s) for s in record["strides"]), int(record["col_stride"]))
    shape = tuple(
        1 if not stride else dim for dim, stride in zip((*grid, cols), strides, strict=True)
    )
    reach = sum((dim - 1) * stride for dim, stride in zip(shape, strides, strict=True))
    data = bus.cmx.view(address, reach + kind.storage.itemsize)
    return kind.code, np.ndarray(shape, kind.storage, data, strides=strides)


def _store(kind: DType, values: npt.NDArray[Any], result: F32) -> None:
    if kind is DType.BIN:
        values[...] = result != 0
    elif kind in _FLOATS:
        values[...] = narrowed(kind, result)
    else:
        limits = np.iinfo(values.dtype)
        # The largest f32 below 2**63, so that conversion to i64 does not overflow.
        high = min(limits.max, (1 << 63) - (1 << 39))
        values[...] = np.clip(np.trunc(result.astype(np.float64)), limits.min, high)


def _step(
    i: Instruction, windows: Sequence[Window], widest: int
) -> Callable[[dict[int, F32]], None]:
    """Return an instruction as a function over the registers."""
    if i.form is Form.DST_WINDOW:
        kind, values = windows[i.window]
        return lambda registers: registers.__setitem__(i.dst, widened(kind, values))
    if i.form is Form.WINDOW_A:
        kind, values = windows[i.window]
        return lambda registers: _store(kind, values, registers[i.a])
    if i.op is Op.END:
        return lambda _: None
    if i.op in (Op.IMM, Op.IOTA):
        constant = (
            np.full((1, 1, 1, 1), i.immediate, np.float32)
            if i.op is Op.IMM
            else np.arange(widest, dtype=np.float32).reshape(1, 1, 1, -1)
        )
        return lambda registers: registers.__setitem__(i.dst, constant)
    if i.op is Op.ROT:
        return lambda registers: registers.__setitem__(i.dst, np.roll(registers[i.a], -i.imm, -1))
    compute, sources = _COMPUTE[i.op], i.sources
    return lambda registers: registers.__setitem__(
        i.dst, compute(*(registers[source] for source in sources))
    )
