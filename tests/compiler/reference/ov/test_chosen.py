"""Comparison of ops with OpenVINO in chosen cases: corner cases that draws rarely find."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
import openvino.opset1 as op_1
import openvino.opset15 as op
import pytest

Check = Callable[..., None]
"""Function that builds one op from parameters and compares: ``check(build, *inputs)``."""

_RANDOM = np.random.RandomState(0)


def floats(*shape: int) -> np.ndarray:
    """Return f32 numbers, normally distributed."""
    return _RANDOM.standard_normal(shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    """Return f32 numbers above 0.1."""
    return np.abs(floats(*shape)) + np.float32(0.1)


@pytest.mark.parametrize("target", ["f16", "i32", "i64", "boolean"])
def test_convert(check: Check, target: str) -> None:
    check(lambda x: op.convert(x, target), np.array([0.0, 1.75, -2.5, 300.0], np.float32))


def test_clamp_between_fractions(check: Check) -> None:
    check(lambda x: op.clamp(x, -0.5, 0.7), floats(3, 4))


def test_fake_quantize_to_a_byte(check: Check) -> None:
    ends = [np.float32(v) for v in (-1, 1, 0, 255)]
    check(lambda x: op.fake_quantize(x, *ends, 256), floats(2, 50))


@pytest.mark.matrix
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

    # OpenVINO computes f16 ops in f32 here; a pass of ours does so later: hence the tolerance.
    check(build, floats(5, 24) / 100, rtol=2e-3)


def test_top_k_of_equal_elements_takes_the_first(check: Check) -> None:
    x = np.array([1, 3, 3, 2, 3, 1], np.float32)
    for mode in ("max", "min"):
        check(lambda x, m=mode: op.topk(x, np.int64(2), 0, m, "value", stable=True), x)


@pytest.mark.parametrize(
    ("shape", "pattern"),
    [((2, 3, 4), [0, 0, 2, 2]), ((0, 3, 4), [0, -1]), ((2, 0, 4), [0, -1]), ((0, 3), [-1, 3])],
)
def test_reshape_of_a_possibly_empty_tensor(
    check: Check, shape: tuple[int, ...], pattern: list[int]
) -> None:
    check(lambda x: op.reshape(x, np.array(pattern, np.int64), True), floats(*shape))


def test_concat_with_an_empty_tensor(check: Check) -> None:
    check(lambda a, b: op.concat([a, b], 1), floats(2, 0, 3), floats(2, 1, 3))
    nothing = op.constant(np.zeros((2, 0, 3), np.float32))
    check(lambda a: op.concat([nothing, a], 1), floats(2, 1, 3))


def test_squeeze_leaves_a_longer_dimension(check: Check) -> None:
    # OpenVINO, and so our inference, treats an unknown dimension as 1.
    axes = np.array([0, 1], np.int64)
    check(lambda x: op_1.squeeze(x, axes), floats(2, 1, 3), with_unknown=False)


@pytest.mark.parametrize(
    ("begin", "end", "strides", "masks"),
    [
        ([0, 1], [2, 3], [1, 1], ([0, 0], [0, 0])),
        ([0, 1], [0, 0], [1, 2], ([1, 0], [1, 1])),
        ([0, -1], [0, 0], [1, -1], ([1, 0], [1, 1])),
        ([1, 0], [0, 0], [1, 1], ([0, 1], [0, 1], [0, 0], [1, 0])),
        ([0, 0], [0, 0], [1, 1], ([1, 1], [1, 1], [1, 0])),
        ([0, 1], [0, 2], [1, 1], ([0, 0], [0, 0], [0, 0], [0, 0], [1, 0])),
    ],
)
def test_strided_slice(
    check: Check,
    begin: list[int],
    end: list[int],
    strides: list[int],
    masks: tuple[list[int], ...],
) -> None:
    bounds = [np.array(b, np.int64) for b in (begin, end, strides)]
    check(lambda x: op.strided_slice(x, *bounds, *masks), floats(2, 5, 3))
