"""Checks of SHAVE programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from driver_layer.abi.dtypes import ELEMENT_TYPES, f32_to_bf16
from driver_layer.abi.layout import filled
from driver_layer.abi.platforms import tile_base
from driver_layer.abi.shave import KERNEL_ARGS, WINDOW, Access, Op
from driver_layer.abi.shave_text import assemble
from driver_layer.abi.special import erf
from driver_layer.testing.check_engines.bench import Array, Bench, faults, stored, widened


def _arguments(grid: tuple[int, int, int], *windows: dict[str, Any]) -> bytes:
    head = filled(KERNEL_ARGS, window_count=len(windows), grid=grid)
    records = (filled(WINDOW, **fields) for fields in windows)
    return b"".join(part.tobytes() for part in (head, *records))


def _window(offset: int, kind: str, cols: int, strides: tuple[int, int, int]) -> dict[str, Any]:
    element = ELEMENT_TYPES[kind]
    return {
        "address": tile_base(0) + offset,
        "type": element.code,
        "cols": cols,
        "col_stride": element.storage.itemsize,
        "strides": strides,
        "access": Access.READ | Access.WRITE,
    }


def _row(bench: Bench, text: str, x: Array, kind: str, out: str, cols: int) -> Array:
    """Run a program on one row; return the row that it writes."""
    bench.cmx(0x1000, x)
    args = _arguments(
        (1, 1, 1),
        _window(0x1000, kind, len(x), (0, 0, 0)),
        _window(0x2000, out, cols, (0, 0, 0)),
    )
    bench.engines.shave(assemble(text), args, 0, bench.bus)()
    return bench.read(tile_base(0) + 0x2000, ELEMENT_TYPES[out].storage.str, cols)


def _rounded(x: Array, kind: str) -> Array:
    return widened(stored(x, kind), kind)


_X = np.array([-2.5, -1.0, -0.25, 0.5, 1.0, 2.0, 3.5, 7.0], np.float32)

_INSTRUCTIONS: dict[str, Callable[[Array], Array]] = {
    "mov   v1, v0": lambda x: x,
    "neg   v1, v0": lambda x: -x,
    "abs   v1, v0": np.abs,
    "exp   v1, v0": np.exp,
    "sin   v1, v0": np.sin,
    "cos   v1, v0": np.cos,
    "tanh  v1, v0": np.tanh,
    "erf   v1, v0": erf,
    "rint  v1, v0": np.rint,
    "floor v1, v0": np.floor,
    "rcp   v1, v0": lambda x: 1 / x,
    "add   v1, v0, v0": lambda x: x + x,
    "sub   v1, v0, v0": lambda x: x - x,
    "mul   v1, v0, v0": lambda x: x * x,
    "div   v1, v0, v0": lambda x: x / x,
    "fma   v1, v0, v0, v0": lambda x: x * x + x,
    "rsum  v1, v0": lambda x: np.full_like(x, x.sum()),
    "rmax  v1, v0": lambda x: np.full_like(x, x.max()),
    "rmin  v1, v0": lambda x: np.full_like(x, x.min()),
    "rot   v1, v0, 3": lambda x: np.roll(x, -3),
    "iota  v1": lambda x: np.arange(len(x), dtype=np.float32),
    "imm   v1, 0.75": lambda x: np.full_like(x, 0.75),
    "abs v2, v0\n sqrt v1, v2": lambda x: np.sqrt(np.abs(x)),
    "abs v2, v0\n rsqrt v1, v2": lambda x: 1 / np.sqrt(np.abs(x)),
    "abs v2, v0\n log v1, v2": lambda x: np.log(np.abs(x)),
    "imm v2, 1\n min v1, v0, v2": lambda x: np.minimum(x, 1),
    "imm v2, 1\n max v1, v0, v2": lambda x: np.maximum(x, 1),
    "abs v3, v0\n imm v2, 1.5\n pow v1, v3, v2": lambda x: np.abs(x) ** 1.5,
    "imm v2, 1\n cmpeq v1, v0, v2": lambda x: x == 1,
    "imm v2, 1\n cmplt v1, v0, v2": lambda x: x < 1,
    "imm v2, 1\n cmple v1, v0, v2": lambda x: x <= 1,
    "imm v2, 3\n div v2, v0, v2\n re4m3 v1, v2": lambda x: _rounded(x / 3, "f8e4m3"),
    "imm v2, 3\n div v2, v0, v2\n re5m2 v1, v2": lambda x: _rounded(x / 3, "f8e5m2"),
    "imm v2, 0\n cmplt v2, v2, v0\n neg v3, v0\n sel v1, v2, v0, v3": np.abs,
}
"""Programs, and the functions of a row that they compute."""


def check_every_instruction(bench: Bench) -> None:
    """Check each instruction against its definition in the table of opcodes."""
    checked: set[Op] = set()
    for text, expected in _INSTRUCTIONS.items():
        whole = f"ld v0, w0\n{text}\nst w1, v1\nend"
        checked.update(each.op for each in assemble(whole))
        row = _row(bench, whole, _X, "f32", "f32", len(_X))
        assert np.allclose(row, expected(_X), rtol=1e-6, atol=1e-6), text
    assert checked == {*Op}, "add the missing instructions to _INSTRUCTIONS"


def check_loads_and_stores_of_every_type(bench: Bench) -> None:
    """Check conversions: integers truncate towards zero and saturate, booleans are 0 or 1."""
    copy = "ld v0, w0\nst w1, v0\nend"
    x = np.array([0.0, 1.75, -2.75, 300.0], np.float32)
    expected = {
        "f32": x,
        "f16": x.astype(np.float16),
        "bf16": f32_to_bf16(x),
        "i64": np.array([0, 1, -2, 300]),
        "i32": np.array([0, 1, -2, 300]),
        "u8": np.array([0, 1, 0, 255]),
        "i8": np.array([0, 1, -2, 127]),
        "boolean": np.array([0, 1, 1, 1]),
        "f8e4m3": np.array([0x00, 0x3E, 0xC3, 0x79]),
        "f8e5m2": np.array([0x00, 0x3F, 0xC2, 0x5D]),
    }
    for kind, values in expected.items():
        found = _row(bench, copy, x, "f32", kind, len(x))
        assert np.array_equal(found, values), kind
        again = _row(bench, copy, found, kind, "f32", len(x))
        assert np.array_equal(again, widened(found, kind)), kind


def check_a_grid_reaches_every_row(bench: Bench) -> None:
    """Check strides: windows step by them, stride 0 repeats a row, one column repeats a value."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    scale = np.array([1, 10, 100], np.float32)
    bench.cmx(0x1000, x)
    bench.cmx(0x1800, scale)
    args = _arguments(
        (1, 2, 3),
        _window(0x1000, "f32", 4, (0, 48, 16)),
        _window(0x1800, "f32", 1, (0, 0, 4)),
        _window(0x2000, "f32", 4, (0, 48, 16)),
    )
    program = assemble("ld v0, w0\nld v1, w1\nmul v0, v0, v1\nst w2, v0\nend")
    bench.engines.shave(program, args, 0, bench.bus)()
    result = bench.read(tile_base(0) + 0x2000, "<f4", 24).reshape(2, 3, 4)
    assert np.array_equal(result, x * scale[None, :, None])


def check_windows_that_leave_their_tile_are_faults(bench: Bench) -> None:
    """Check that a window with a byte outside the tile's CMX is a fault."""
    program = assemble("ld v0, w0\nst w0, v0\nend")
    good = _window(0x1000, "f32", 4, (0, 0, 16))
    for bad in (
        {"address": tile_base(1) + 0x1000},
        {"address": 0x80000000 | tile_base(0) + 0x1000},
        {"address": tile_base(0) + (2 << 20) - 8},
        {"strides": (0, 0, 1 << 21)},
        {"cols": 1 << 30},
        {"type": 99},
        {"cols": 0},
    ):
        args = _arguments((1, 1, 2), good | bad)
        faults(lambda a=args: bench.engines.shave(program, a, 0, bench.bus))
