"""Element-wise ops, conversions and quantised constants mean what the real OpenVINO says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
import openvino.opset15 as op
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler_layer.testing.values import floats, positive

Check = Callable[..., None]
"""Builds one op of parameters and compares: ``check(build, *inputs)``."""


UNARY = {
    "Sqrt": (op.sqrt, positive),
    "Exp": (op.exp, floats),
    "Sin": (op.sin, floats),
    "Cos": (op.cos, floats),
    "Tanh": (op.tanh, floats),
    "Sigmoid": (op.sigmoid, floats),
    "Swish": (op.swish, floats),
    "Negative": (op.negative, floats),
    "Abs": (op.abs, floats),
    "Floor": (op.floor, floats),
    "Ceiling": (op.ceiling, floats),
    "Sign": (op.sign, floats),
    "Log": (op.log, positive),
    "Relu": (op.relu, floats),
    "Erf": (op.erf, floats),
    "Softplus": (op.softplus, floats),
    "HSwish": (op.hswish, floats),
}
BINARY = {
    "Add": op.add,
    "Subtract": op.subtract,
    "Multiply": op.multiply,
    "Divide": op.divide,
    "Minimum": op.minimum,
    "Maximum": op.maximum,
    "Equal": op.equal,
    "Less": op.less,
    "LessEqual": op.less_equal,
    "Greater": op.greater,
    "GreaterEqual": op.greater_equal,
    "NotEqual": op.not_equal,
    "Mod": op.mod,
    "FloorMod": op.floor_mod,
    "SquaredDifference": op.squared_difference,
}
SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@pytest.mark.parametrize("name", UNARY)
@given(shape=SHAPES)
def test_unary(check: Check, name: str, shape: list[int]) -> None:
    build, values = UNARY[name]
    check(build, values(*shape))


@pytest.mark.parametrize("name", BINARY)
@given(shape=SHAPES, data=st.data())
def test_binary_with_broadcasting(
    check: Check, name: str, shape: list[int], data: st.DataObject
) -> None:
    other = [data.draw(st.sampled_from([1, d])) for d in shape]
    other = other[data.draw(st.integers(0, len(other) - 1)) :]
    check(BINARY[name], floats(*shape), floats(*other))


@pytest.mark.parametrize("exponent", [2.0, 0.5, -0.5, 3.0])
def test_power(check: Check, exponent: float) -> None:
    check(lambda x: op.power(x, np.float32(exponent)), positive(2, 3))


def test_integer_arithmetic(check: Check) -> None:
    # No negative quotients: the CPU plugin rounds them towards zero, the specification down.
    a, b = np.array([7, 8, 5], np.int64), np.array([2, 2, 5], np.int64)
    for build in (op.add, op.subtract, op.multiply, op.divide, op.equal):
        check(build, a, b)


@pytest.mark.parametrize("build", [op.bitwise_and, op.logical_and])
def test_and_of_booleans(check: Check, build: Callable[..., object]) -> None:
    check(build, np.array([True, True, False]), np.array([True, False, False]))


def test_select(check: Check) -> None:
    condition = np.array([[True], [False]])
    check(op.select, condition, floats(2, 3), floats(3))


@pytest.mark.parametrize("target", ["f16", "i32", "i64", "boolean"])
def test_convert(check: Check, target: str) -> None:
    check(lambda x: op.convert(x, target), np.array([0.0, 1.75, -2.5, 300.0], np.float32))


@pytest.mark.parametrize("mode", ["half_to_even", "half_away_from_zero"])
def test_round(check: Check, mode: str) -> None:
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.4, -0.6], np.float32)
    check(lambda x: op.round(x, mode), halves)


@pytest.mark.parametrize("mode", ["erf", "tanh"])
@given(shape=SHAPES)
def test_gelu(check: Check, mode: str, shape: list[int]) -> None:
    check(lambda x: op.gelu(x, mode), floats(*shape) * 3, rtol=2e-5)


def test_clamp(check: Check) -> None:
    check(lambda x: op.clamp(x, -0.5, 0.7), floats(3, 4))
    # The CPU plugin computes a Clamp of integers in their own type: bounds that are whole.
    check(lambda x: op.clamp(x, -1.0, 2.0), np.arange(-4, 5, dtype=np.int32))


@pytest.mark.parametrize("build", [op.logical_or, op.logical_xor, op.bitwise_or, op.bitwise_xor])
def test_or_of_booleans(check: Check, build: Callable[..., object]) -> None:
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    check(build, a, b)


@pytest.mark.parametrize("build", [op.logical_not, op.bitwise_not])
def test_not_of_booleans(check: Check, build: Callable[..., object]) -> None:
    check(build, np.array([True, False]))


@pytest.mark.parametrize("build", [op.bitwise_and, op.bitwise_or, op.bitwise_xor])
def test_bits_of_integers(check: Check, build: Callable[..., object]) -> None:
    check(build, np.array([12, -7, 5], np.int32), np.array([10, 3, -1], np.int32))


def test_shifts(check: Check) -> None:
    for build in (op.bitwise_left_shift, op.bitwise_right_shift):
        check(build, np.array([1, 9, 64], np.int32), np.array([3, 1, 2], np.int32))


def test_fake_quantize(check: Check) -> None:
    low, high = np.array([[-1.0], [-0.5]], np.float32), np.array([[1.0], [2.0]], np.float32)
    check(lambda x: op.fake_quantize(x, low, high, low, high, 256), floats(2, 50))
    ends = [np.float32(v) for v in (-1, 1, 0, 255)]
    check(lambda x: op.fake_quantize(x, *ends, 256), floats(2, 50))


@pytest.mark.parametrize("element", ["u8", "i8", "u4", "i4", "f16", "bf16"])
@pytest.mark.parametrize("grouped", [False, True])
def test_compressed_weights(check: Check, element: str, grouped: bool) -> None:
    """Constants of each type, with scales and zero points as the exporter writes them."""
    shape = (6, 3, 8) if grouped else (6, 24)
    low, high = (0, 16) if element == "u4" else (-8, 8)
    stored = np.random.RandomState(0).randint(low, high, shape)
    if element in ("u8", "u4"):
        stored = np.abs(stored)
    kind = getattr(ov.Type, element)
    weights = op.constant(stored.astype(np.float32), kind)
    scales = op.constant(positive(*shape[:-1], 1).astype(np.float16))
    zeros = op.constant(np.full((*shape[:-1], 1), 3, np.float32), kind)

    def build(x: object) -> object:
        centred = op.subtract(op.convert(weights, "f16"), op.convert(zeros, "f16"))
        scaled = op.multiply(centred, scales)
        flat = op.reshape(scaled, np.array([6, 24], np.int64), False)
        return op.matmul(x, op.convert(flat, "f32"), False, True)

    # OpenVINO computes f16 ops in f32 here, which we leave to a pass: hence the tolerance.
    check(build, floats(5, 24) / 100, rtol=2e-3)


@given(shape=SHAPES, data=st.data())
def test_select_with_broadcasting(check: Check, shape: list[int], data: st.DataObject) -> None:
    small = [data.draw(st.sampled_from([1, d])) for d in shape]
    condition = floats(*small) > 0
    check(op.select, condition, floats(*shape), floats(*shape[-1:]))


@given(shape=SHAPES)
def test_conversions_of_any_shape(check: Check, shape: list[int]) -> None:
    for target in ("f16", "i32", "boolean"):
        check(lambda x, t=target: op.convert(x, t), floats(*shape) * 10)
