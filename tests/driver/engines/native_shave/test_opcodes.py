"""Native kernels equal the reference for every opcode, element type and row length."""

from __future__ import annotations

import numpy as np
import pytest

from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.abi.shave import FORMS, REDUCTIONS, Form, Op

LENGTHS = [2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 64, 70, 1153]

SPECIAL = np.float32(
    [
        *(0.0, -0.0, 0.5, -0.5, -0.9, 1.0, -1.0, 1.5, 2.0, 2.5, -2.5, 3.0, -3.0, 100.25, 255.5),
        *(1.4e-45, 1e-40, -1e-40, 1e-38, 2.9e-8, 3e-8, 6e-8, 65504.0, 65519.9, 65520.0),
        *(88.7, 89.0, -87.5, -100.0, -103.9, -104.5, 8388608.5, -8388607.5, 1048577.0),
        *(16777216.0, 16777217.0, 2147483648.0, 3e9, 1e19, -1e19, 1e30, -1e30),
        *(3.4028235e38, -3.4028235e38, np.inf, -np.inf, np.nan),
    ]
)

_OPERANDS = {Form.DST_A: "v0", Form.DST_A_B: "v0, v1", Form.DST_A_B_C: "v0, v1, v2"}

COMPUTING = [op for op in Op if FORMS[op] in _OPERANDS]
_each_opcode = pytest.mark.parametrize("op", COMPUTING, ids=lambda op: op.name.lower())

MEMORY_TYPES = ["f32", "f16", "bf16", "i64", "i32", "u8", "i8", "boolean"]
FLOAT8 = ["f8e4m3", "f8e5m2"]
MEMORY_TYPES += FLOAT8


def _program(op: Op) -> str:
    name = op.name.lower()
    loads = "ld v0, w0\nld v1, w1\nld v2, w2"
    return f"{loads}\n{name} v3, {_OPERANDS[FORMS[op]]}\nst w3, v3\nend"


def _whole(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return numbers whose sums are exact in any order."""
    return rng.integers(-9, 9, count).astype(ELEMENT_TYPES[kind].storage)


def _options(op: Op) -> dict[str, object]:
    return {"fill": _whole, "rough": 0.0} if op is Op.RSUM else {}


@pytest.mark.matrix
@_each_opcode
def test_one_kernel_serves_rows_of_any_length(native, rows, op) -> None:
    grid = (1, 1, 2)
    keys = {
        native.check(_program(op), grid, *[rows("f32", grid, cols)] * 4, **_options(op)).spec.key
        for cols in LENGTHS
    }
    assert len(keys) == 1


@pytest.mark.matrix
@_each_opcode
def test_single_values_are_broadcast_to_rows(native, rows, op) -> None:
    """Operands have one column or many, and repeat in some dimensions of the grid."""
    operands = len(_OPERANDS[FORMS[op]].split())
    for cols in {1: [(1,)], 2: [(1, 1), (1, 40), (7, 1)], 3: [(7, 1, 7), (1, 1, 33)]}[operands]:
        for grid in ((1, 1, 1), (2, 3, 4)):
            axes = ((0, 1, 2), (2,), (0, 1))
            windows = [rows("f32", grid, *one) for one in zip((*cols, 2, 2)[:3], axes, strict=True)]
            width = 1 if op in REDUCTIONS else max(cols)
            native.check(_program(op), grid, *windows, rows("f32", grid, width), **_options(op))


@pytest.mark.matrix
@pytest.mark.parametrize("op", [op for op in COMPUTING if op not in REDUCTIONS])
def test_special_values(native, spec, op) -> None:
    """All pairs of zeros, infinities, NaNs, denormals, integers and limits."""
    a, b = (x.reshape(-1) for x in np.meshgrid(SPECIAL, SPECIAL))
    fill = [a, b, np.roll(a, 1), None]
    native.check(_program(op), (1, 1, 1), *[spec("f32", a.size)] * 4, fill=fill)


@pytest.mark.parametrize("op", [Op.RMAX, Op.RMIN])
@pytest.mark.parametrize("cols", [2, 3, 16, 17, 70])
def test_reductions_propagate_nans(native, rows, op, cols) -> None:
    """A NaN at each place of a row; other rows have infinities only."""
    grid = (1, 1, 2 * cols)
    values = np.full((2 * cols, cols), np.inf, np.float32) * np.where(np.arange(cols) % 2, 1, -1)
    values[np.arange(cols), np.arange(cols)] = np.nan
    row, single = rows("f32", grid, cols), rows("f32", grid, 1)
    native.check(_program(op), grid, row, row, row, single, fill=[values, None, None, None])


@pytest.mark.matrix
@pytest.mark.parametrize("kind", MEMORY_TYPES)
@pytest.mark.parametrize("cols", [2, 5, 16, 37, 130])
def test_loads_support_every_type(native, rows, kind, cols) -> None:
    grid = (1, 1, 3)
    native.check(
        "ld v0, w0\nst w1, v0\nend", grid, rows(kind, grid, cols, gap=6), rows("f32", grid, cols)
    )


@pytest.mark.parametrize("kind", ["f16", "bf16", "u8", "i8", *FLOAT8])
def test_loads_convert_all_bit_patterns_of_small_types(native, spec, kind) -> None:
    count = 1 << ELEMENT_TYPES[kind].bits
    values = np.arange(count, dtype=f"<u{ELEMENT_TYPES[kind].bits // 8}")
    values = values.view(ELEMENT_TYPES[kind].storage)
    fill = [values, None]
    native.check(
        "ld v0, w0\nst w1, v0\nend", (1, 1, 1), spec(kind, count), spec("f32", count), fill=fill
    )


@pytest.mark.matrix
@pytest.mark.parametrize("kind", MEMORY_TYPES)
def test_stores_round_and_saturate(native, spec, kind) -> None:
    bits = np.random.default_rng(5).integers(0, 1 << 32, 4000, dtype=np.uint32)
    near_half = np.random.default_rng(6).standard_normal(1000).astype(np.float32) * 1e-5
    values = np.concatenate([SPECIAL, bits.view(np.float32), near_half])
    if ELEMENT_TYPES[kind].storage.kind in "iu" and kind not in ("bf16", "boolean", *FLOAT8):
        values = values[~np.isnan(values)]  # numpy does not define the integer value of NaN
    windows = [spec("f32", values.size), spec(kind, values.size)]
    with np.errstate(over="ignore"):
        native.check("ld v0, w0\nst w1, v0\nend", (1, 1, 1), *windows, fill=[values, None])


@pytest.mark.matrix
@pytest.mark.parametrize("turn", [0, 1, 5, 16, 31, 32])
def test_rotations_wrap_around_the_row(native, rows, turn) -> None:
    grid = (1, 2, 2)
    for cols in (33, 34, 47, 48, 64, 70):
        text = f"ld v0, w0\nrot v1, v0, {turn}\nsub v1, v1, v0\nst w1, v1\nend"
        native.check(text, grid, rows("f16", grid, cols), rows("f32", grid, cols))


def test_iota_counts_the_columns_of_the_widest_window(native, rows) -> None:
    grid = (1, 1, 3)
    single, wide = rows("f32", grid, 1), rows("f32", grid, 41)
    native.check("iota v0\nst w0, v0\nend", grid, wide)
    native.check("iota v0\nrsum v0, v0\nst w0, v0\nend", grid, single, wide)
    native.check("iota v0\nld v1, w0\nadd v0, v0, v1\nst w0, v0\nend", grid, single)
    native.check("iota v0\nld v1, w0\nmul v0, v0, v1\nst w1, v0\nend", grid, single, wide)
