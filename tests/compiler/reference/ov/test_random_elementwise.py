"""Comparison of element-wise ops with OpenVINO, in drawn cases.

A case is a function of draws; it returns a function that builds the op, and the op's inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import openvino.opset15 as op
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openvino.opset17 import erfinv

Case = Callable[..., tuple[Any, ...]]
"""Function from draws to a builder of the op, its inputs, and indices of required constants."""


def unary(build: Callable[..., object], draws: Any) -> tuple[Any, ...]:
    return build, [draws.floats(draws.shape(least=0), draws.one_of("f4", "f2"))]


def unary_of_positive(build: Callable[..., object], draws: Any) -> tuple[Any, ...]:
    x = draws.floats(draws.shape(least=0), draws.one_of("f4", "f2"))
    return build, [np.abs(x) + x.dtype.type(0.1)]


def erf_inv(draws: Any) -> tuple[Any, ...]:
    x = draws.floats(draws.shape(least=0), draws.one_of("f4", "f2"))
    return erfinv, [np.tanh(x)]


def unary_of_any_type(build: Callable[..., object], draws: Any) -> tuple[Any, ...]:
    return build, [draws.numbers(draws.shape(least=0))]


def of_booleans(build: Callable[..., object], draws: Any) -> tuple[Any, ...]:
    return build, [_booleans(draws, draws.shape(least=0))]


def binary(build: Callable[..., object], draws: Any) -> tuple[Any, ...]:
    shape, other = _two_shapes(draws)
    a = draws.numbers(shape)
    b = draws.floats(other, a.dtype) if a.dtype.kind == "f" else draws.integers(other)
    return build, [a, b.astype(a.dtype)]


def quotient(build: Callable[..., object], draws: Any) -> tuple[Any, ...]:
    """Draw floats or positive integers: the CPU plugin rounds negative quotients towards zero."""
    shape, other = _two_shapes(draws)
    if draws.flag():
        divisor = np.abs(draws.floats(other)) + np.float32(0.5)
        return build, [draws.floats(shape), divisor * np.float32(draws.one_of(1, -1))]
    kind = draws.one_of("i4", "i8")
    return build, [draws.integers(shape, 0, 40, kind), draws.integers(other, 1, 9, kind)]


def power(draws: Any) -> tuple[Any, ...]:
    shape, other = _two_shapes(draws)
    base = np.abs(draws.floats(shape)) + np.float32(0.1)
    return op.power, [base, draws.floats(other)]


def of_two_booleans(build: Callable[..., object], draws: Any) -> tuple[Any, ...]:
    shape, other = _two_shapes(draws)
    return build, [_booleans(draws, shape), _booleans(draws, other)]


def bits(build: Callable[..., object], draws: Any) -> tuple[Any, ...]:
    if draws.flag():
        return of_two_booleans(build, draws)
    shape, other = _two_shapes(draws)
    return build, [draws.integers(each, -99, 99, "i4") for each in (shape, other)]


def not_of_bits(draws: Any) -> tuple[Any, ...]:
    if draws.flag():
        return of_booleans(op.bitwise_not, draws)
    return op.bitwise_not, [draws.integers(draws.shape(least=0), -99, 99, "i4")]


def shift(build: Callable[..., object], draws: Any) -> tuple[Any, ...]:
    shape, other = _two_shapes(draws)
    return build, [draws.integers(shape, 0, 99, "i4"), draws.integers(other, 0, 7, "i4")]


def round_(draws: Any) -> tuple[Any, ...]:
    """Draw halves, so that many are ties."""
    mode = draws.one_of("half_to_even", "half_away_from_zero")
    x = draws.integers(draws.shape(), -9, 9).astype("f4") / 2
    return partial(op.round, mode=mode), [x]


def swish(draws: Any) -> tuple[Any, ...]:
    x = draws.floats(draws.shape())
    if draws.flag():
        return op.swish, [x]
    return op.swish, [x, np.float32(draws.one_of(0.5, 1.0, 1.7))]


def prelu(draws: Any) -> tuple[Any, ...]:
    """Draw one slope, or one for each channel."""
    x = draws.floats([draws.whole(1, 3), draws.whole(2, 4), *draws.shape(least=0, most=2)])
    slope = draws.one_of([], [1], [x.shape[1]])
    return op.prelu, [x, np.abs(draws.floats(slope))]


def gelu(draws: Any) -> tuple[Any, ...]:
    return partial(op.gelu, approximation_mode=draws.one_of("erf", "tanh")), [
        draws.floats(draws.shape()) * 3
    ]


def clamp(draws: Any) -> tuple[Any, ...]:
    """Draw integer bounds: the CPU plugin computes a Clamp of integers in their own type."""
    low = float(draws.whole(-5, 3))
    high = low + draws.whole(0, 5)
    return lambda x: op.clamp(x, low, high), [draws.numbers(draws.shape()) * 3]


def select(draws: Any) -> tuple[Any, ...]:
    shape = draws.shape()
    then = draws.numbers(draws.broadcast_to(shape))
    otherwise = draws.integers(draws.broadcast_to(shape)).astype(then.dtype)
    return op.select, [_booleans(draws, shape), then, otherwise]


def convert(draws: Any) -> tuple[Any, ...]:
    target = draws.one_of("f16", "f32", "i32", "i64", "u8", "i8", "boolean")
    x = draws.numbers(draws.shape(least=0))
    # Conversion of values beyond a type's range is undefined.
    return lambda x: op.convert(x, target), [np.abs(x) if target == "u8" else x]


def fake_quantize(draws: Any) -> tuple[Any, ...]:
    """Draw values away from ties between two steps, where the last bit decides.

    Bounds are common or per channel (dimension 1): with others the CPU plugin does not round.
    """
    shape = draws.shape(least=2)
    bounds = draws.one_of([], [1], [shape[1], *[1] * (len(shape) - 2)])
    levels = draws.one_of(2, 16, 255, 256)
    low = -np.abs(draws.floats(bounds)) - np.float32(0.1)
    high = np.abs(draws.floats(bounds)) + np.float32(0.1)
    out = [low, high] if draws.flag() else [draws.floats(bounds), draws.floats(bounds) + 5]
    at = (
        draws.integers(shape, -levels // 4, levels * 5 // 4)
        + np.clip(draws.floats(shape), -1, 1) / 3
    )
    x = np.asarray(low + at * ((high - low) / (levels - 1)), "f4")
    return partial(_fake_quantize, levels), [x, low, high, *out], (1, 2, 3, 4)


def fake_convert(draws: Any) -> tuple[Any, ...]:
    """Draw one scale or one per channel (dimension 1), and values within and beyond f8's range."""
    shape = draws.shape(least=2)
    bounds = draws.one_of([], [1, shape[1], *[1] * (len(shape) - 2)])
    scale = np.abs(draws.floats(bounds)) * np.float32(draws.one_of(1, 100)) + np.float32(0.1)
    shift = [draws.floats(bounds)] if draws.flag() else []
    kind = draws.one_of("f8e4m3", "f8e5m2")
    return partial(_fake_convert, kind), [draws.floats(shape), scale, *shift], (1, 2)


def _fake_convert(kind: str, *operands: object) -> object:
    return op.fake_convert(*operands, destination_type=kind)


def _fake_quantize(levels: int, *operands: object) -> object:
    return op.fake_quantize(*operands, levels)


def _two_shapes(draws: Any) -> list[list[int]]:
    """Draw two shapes, one of which broadcasts to the other."""
    shape = draws.shape(least=0)
    pair = [shape, draws.broadcast_to(shape)]
    return pair[::-1] if draws.flag() else pair


def _booleans(draws: Any, shape: list[int]) -> np.ndarray:
    return draws.integers(shape, 0, 1, "?")


_OF_FLOATS = {
    "Exp": op.exp,
    "Sin": op.sin,
    "Cos": op.cos,
    "Atan": op.atan,
    "Tanh": op.tanh,
    "Sigmoid": op.sigmoid,
    "Erf": op.erf,
    "SoftPlus": op.softplus,
    "HSwish": op.hswish,
    "Floor": op.floor,
    "Ceiling": op.ceiling,
}
_OF_NUMBERS = {"Negative": op.negative, "Abs": op.abs, "Sign": op.sign, "ReLU": op.relu}
_BINARY = {
    "Add": op.add,
    "Subtract": op.subtract,
    "Multiply": op.multiply,
    "Minimum": op.minimum,
    "Maximum": op.maximum,
    "SquaredDifference": op.squared_difference,
    "Equal": op.equal,
    "NotEqual": op.not_equal,
    "Less": op.less,
    "LessEqual": op.less_equal,
    "Greater": op.greater,
    "GreaterEqual": op.greater_equal,
}
_QUOTIENTS = {"Divide": op.divide, "Mod": op.mod, "FloorMod": op.floor_mod}
_OF_BOOLEANS = {
    "LogicalAnd": op.logical_and,
    "LogicalOr": op.logical_or,
    "LogicalXor": op.logical_xor,
}
_BITS = {"BitwiseAnd": op.bitwise_and, "BitwiseOr": op.bitwise_or, "BitwiseXor": op.bitwise_xor}
_SHIFTS = {
    "BitwiseLeftShift": op.bitwise_left_shift,
    "BitwiseRightShift": op.bitwise_right_shift,
}

CASES: dict[str, Case] = {
    **{kind: partial(unary, build) for kind, build in _OF_FLOATS.items()},
    "Sqrt": partial(unary_of_positive, op.sqrt),
    "Log": partial(unary_of_positive, op.log),
    "ErfInv": erf_inv,
    **{kind: partial(unary_of_any_type, build) for kind, build in _OF_NUMBERS.items()},
    "LogicalNot": partial(of_booleans, op.logical_not),
    "BitwiseNot": not_of_bits,
    **{kind: partial(binary, build) for kind, build in _BINARY.items()},
    **{kind: partial(quotient, build) for kind, build in _QUOTIENTS.items()},
    **{kind: partial(of_two_booleans, build) for kind, build in _OF_BOOLEANS.items()},
    **{kind: partial(bits, build) for kind, build in _BITS.items()},
    **{kind: partial(shift, build) for kind, build in _SHIFTS.items()},
    "Power": power,
    "Round": round_,
    "Swish": swish,
    "PReLU": prelu,
    "Gelu": gelu,
    "Clamp": clamp,
    "Select": select,
    "Convert": convert,
    "FakeConvert": fake_convert,
    "FakeQuantize": fake_quantize,
}
"""Cases by type of layer."""


@pytest.mark.matrix
@pytest.mark.parametrize("kind", CASES)
@given(data=st.data())
def test_elementwise(check_drawn: Callable[..., None], kind: str, data: st.DataObject) -> None:
    check_drawn(kind, data, CASES[kind])
