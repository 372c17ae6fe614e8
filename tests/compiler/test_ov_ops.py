"""Each op of the ``ov`` dialect means what the real OpenVINO says.

A small model is made with OpenVINO's own API, saved as IR, and run twice: by OpenVINO on the CPU,
and by our reader and interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset13 as op
import openvino.opset15 as opset15
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler_layer.dialects.ov import OPS
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.reference.interpreter import Interpreter

CORE = ov.Core()
RANDOM = np.random.RandomState(0)

settings.register_profile("oracle", max_examples=8, deadline=None, derandomize=True)
settings.load_profile("oracle")


def floats(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    return np.abs(floats(*shape)) + np.float32(0.1)


def check(
    folder: Path, build: Callable[..., object], *inputs: np.ndarray, rtol: float = 1e-5
) -> None:
    """Compare both runtimes on one op."""
    parameters = [
        op.parameter(list(x.shape), ov.Type(x.dtype), name=f"p{i}") for i, x in enumerate(inputs)
    ]
    for parameter, name in zip(parameters, "abcdefg", strict=False):
        parameter.output(0).set_names({name})
    node = build(*parameters)
    outputs = list(node.outputs())
    for index, output in enumerate(outputs):
        output.set_names({f"y{index}"})
    model = ov.Model([op.result(output) for output in outputs], parameters, "one_op")
    path = folder / "model.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    compiled = CORE.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    expected = [np.array(v) for v in compiled(list(inputs)).values()]
    feeds = dict(zip("abcdefg", inputs, strict=False))
    ours = read_ir(path)
    ours.verify()
    actual = Interpreter(ours).run(feeds)
    for index, values in enumerate(expected):
        result = actual[f"y{index}"]
        assert result.shape == values.shape
        assert result.dtype == values.dtype
        np.testing.assert_allclose(result, values, rtol=rtol, atol=rtol)


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
}
REDUCTIONS = {
    "ReduceMean": op.reduce_mean,
    "ReduceSum": op.reduce_sum,
    "ReduceMax": op.reduce_max,
    "ReduceProd": op.reduce_prod,
}
SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ops")


@pytest.mark.parametrize("name", UNARY)
@given(shape=SHAPES)
def test_unary(folder: Path, name: str, shape: list[int]) -> None:
    build, values = UNARY[name]
    check(folder, build, values(*shape))


@pytest.mark.parametrize("name", BINARY)
@given(shape=SHAPES, data=st.data())
def test_binary_with_broadcasting(
    folder: Path, name: str, shape: list[int], data: st.DataObject
) -> None:
    other = [data.draw(st.sampled_from([1, d])) for d in shape]
    other = other[data.draw(st.integers(0, len(other) - 1)) :]
    check(folder, BINARY[name], floats(*shape), floats(*other))


@pytest.mark.parametrize("exponent", [2.0, 0.5, -0.5, 3.0])
def test_power(folder: Path, exponent: float) -> None:
    check(folder, lambda x: op.power(x, np.float32(exponent)), positive(2, 3))


def test_integer_arithmetic(folder: Path) -> None:
    # No negative quotients: the CPU plugin rounds them towards zero, the specification down.
    a, b = np.array([7, 8, 5], np.int64), np.array([2, 2, 5], np.int64)
    for build in (op.add, op.subtract, op.multiply, op.divide, op.equal):
        check(folder, build, a, b)


@pytest.mark.parametrize("build", [op.bitwise_and, op.logical_and])
def test_and_of_booleans(folder: Path, build: Callable[..., object]) -> None:
    check(folder, build, np.array([True, True, False]), np.array([True, False, False]))


def test_select(folder: Path) -> None:
    condition = np.array([[True], [False]])
    check(folder, op.select, condition, floats(2, 3), floats(3))


@pytest.mark.parametrize("target", ["f16", "i32", "i64", "boolean"])
def test_convert(folder: Path, target: str) -> None:
    check(folder, lambda x: op.convert(x, target), np.array([0.0, 1.75, -2.5, 300.0], np.float32))


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize(("axes", "keep"), [([-1], True), ([0], False), ([0, 2], True)])
def test_reductions(folder: Path, name: str, axes: list[int], keep: bool) -> None:
    build = REDUCTIONS[name]
    check(folder, lambda x: build(x, np.array(axes, np.int64), keep), floats(2, 3, 4))


@pytest.mark.parametrize("axis", [-1, 1])
def test_softmax(folder: Path, axis: int) -> None:
    check(folder, lambda x: op.softmax(x, axis), floats(2, 3, 4))


@pytest.mark.parametrize(
    ("a", "b", "flags"),
    [
        ((2, 3), (3, 4), (False, False)),
        ((3, 2), (4, 3), (True, True)),
        ((5, 2, 3), (4, 3), (False, True)),
        ((2, 1, 3, 4), (5, 4, 2), (False, False)),
        ((3,), (3, 2), (False, False)),
        ((2, 3), (3,), (False, False)),
    ],
)
def test_matmul(
    folder: Path, a: tuple[int, ...], b: tuple[int, ...], flags: tuple[bool, bool]
) -> None:
    check(folder, lambda x, y: op.matmul(x, y, *flags), floats(*a), floats(*b))


@pytest.mark.parametrize(
    ("shape", "pattern", "special"),
    [((2, 3, 4), [0, -1], True), ((2, 3, 4), [4, 6], False), ((2, 3, 4), [0, 0, 2, 2], True)],
)
def test_reshape(folder: Path, shape: tuple[int, ...], pattern: list[int], special: bool) -> None:
    check(folder, lambda x: op.reshape(x, np.array(pattern, np.int64), special), floats(*shape))


def test_transpose_unsqueeze_squeeze(folder: Path) -> None:
    x = floats(2, 1, 3)
    check(folder, lambda x: op.transpose(x, np.array([2, 0, 1], np.int64)), x)
    check(folder, lambda x: op.unsqueeze(x, np.array([0, -1], np.int64)), x)
    check(folder, lambda x: op.squeeze(x, np.array([1], np.int64)), x)
    check(folder, opset15.squeeze, x)


@pytest.mark.parametrize("mode", ["NUMPY", "BIDIRECTIONAL"])
def test_broadcast(folder: Path, mode: str) -> None:
    target = np.array([2, 3, 4], np.int64)
    check(folder, lambda x: op.broadcast(x, target, broadcast_spec=mode), floats(3, 1))


def test_concat_split_variadic_split(folder: Path) -> None:
    check(folder, lambda a, b: op.concat([a, b], -1), floats(2, 3), floats(2, 1))
    check(folder, lambda x: op.split(x, np.int64(1), 2), floats(2, 4))
    lengths = np.array([1, -1, 2], np.int64)
    check(folder, lambda x: op.variadic_split(x, np.int64(-1), lengths), floats(2, 6))


@given(start=st.integers(-6, 6), stop=st.integers(-6, 6), step=st.sampled_from([1, 2, -1]))
def test_slice(folder: Path, start: int, stop: int, step: int) -> None:
    bounds = [np.array([v], np.int64) for v in (start, stop, step, 1)]
    if len(range(5)[slice(start, stop, step)]) == 0:
        return  # OpenVINO's CPU plugin gives empty results a shape of their own
    check(folder, lambda x: op.slice(x, *bounds), floats(2, 5))


@pytest.mark.parametrize(("axis", "indices"), [(0, [[1, 0]]), (1, [2]), (-1, [-1, 0])])
def test_gather(folder: Path, axis: int, indices: list[int]) -> None:
    rows = np.array(indices, np.int64)
    check(folder, lambda x: op.gather(x, rows, np.int64(axis)), floats(2, 3))


def test_gather_with_batch_dimensions(folder: Path) -> None:
    rows = np.array([[0, 2], [1, 1]], np.int64)
    check(folder, lambda x: op.gather(x, rows, np.int64(1), 1), floats(2, 3, 4))


def test_shape_of_and_range(folder: Path) -> None:
    check(folder, op.shape_of, floats(2, 3))
    check(folder, lambda x: op.range(np.int64(2), x, np.int64(3), "i64"), np.array(11, np.int64))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_scaled_dot_product_attention(folder: Path, masked: bool, causal: bool) -> None:
    if masked and causal:
        return  # the mask is ignored then
    inputs = [floats(1, 2, 3, 8), floats(1, 2, 3, 8), floats(1, 2, 3, 8)]
    if masked:
        inputs.append(floats(1, 1, 3, 3))
    check(folder, lambda *x: op.scaled_dot_product_attention(*x, causal=causal), *inputs)


def test_every_op_is_tested_here_or_is_no_op_of_an_ir() -> None:
    """RMS and RoPE are made by our passes; state and constants are tested with whole models."""
    source = Path(__file__).read_text()
    ours = {"RMS", "RoPE", "Constant", "ReadValue", "Assign"}
    snake = {"ScaledDotProductAttention": "scaled_dot_product_attention"}
    for name in set(OPS) - ours:
        words = snake.get(name) or "".join("_" + c.lower() if c.isupper() else c for c in name)[1:]
        assert f"op.{words.replace('mat_mul', 'matmul')}" in source, name
