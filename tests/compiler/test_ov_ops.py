"""Each op of the ``ov`` dialect means what the real OpenVINO says.

A small model is made with OpenVINO's own API, saved as IR, and run twice: by OpenVINO on the CPU,
and by our reader and interpreter; what our writer makes of it OpenVINO runs to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset1 as op_1
import openvino.opset15 as op
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler_layer.dialects.ov import OPS
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.writers.openvino_ir import write_ir

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
    """Compare both runtimes on one op, read and written."""
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
    written = folder / "written.xml"
    write_ir(ours, written)
    again = CORE.compile_model(written, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    for values, others in zip(expected, again(list(inputs)).values(), strict=True):
        np.testing.assert_array_equal(values, others)
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
REDUCTIONS = {
    "ReduceMean": op.reduce_mean,
    "ReduceSum": op.reduce_sum,
    "ReduceMax": op.reduce_max,
    "ReduceProd": op.reduce_prod,
    "ReduceMin": op.reduce_min,
    "ReduceL1": op.reduce_l1,
    "ReduceL2": op.reduce_l2,
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
    check(folder, op.squeeze, x)
    check(folder, lambda x: op_1.squeeze(x, np.array([0, 1], np.int64)), x)


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


@pytest.mark.parametrize("mode", ["half_to_even", "half_away_from_zero"])
def test_round(folder: Path, mode: str) -> None:
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.4, -0.6], np.float32)
    check(folder, lambda x: op.round(x, mode), halves)


@pytest.mark.parametrize("mode", ["erf", "tanh"])
@given(shape=SHAPES)
def test_gelu(folder: Path, mode: str, shape: list[int]) -> None:
    check(folder, lambda x: op.gelu(x, mode), floats(*shape) * 3, rtol=2e-5)


def test_clamp(folder: Path) -> None:
    check(folder, lambda x: op.clamp(x, -0.5, 0.7), floats(3, 4))
    # The CPU plugin computes a Clamp of integers in their own type: bounds that are whole.
    check(folder, lambda x: op.clamp(x, -1.0, 2.0), np.arange(-4, 5, dtype=np.int32))


@pytest.mark.parametrize("build", [op.logical_or, op.logical_xor, op.bitwise_or, op.bitwise_xor])
def test_or_of_booleans(folder: Path, build: Callable[..., object]) -> None:
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    check(folder, build, a, b)


@pytest.mark.parametrize("build", [op.logical_not, op.bitwise_not])
def test_not_of_booleans(folder: Path, build: Callable[..., object]) -> None:
    check(folder, build, np.array([True, False]))


@pytest.mark.parametrize("build", [op.bitwise_and, op.bitwise_or, op.bitwise_xor])
def test_bits_of_integers(folder: Path, build: Callable[..., object]) -> None:
    check(folder, build, np.array([12, -7, 5], np.int32), np.array([10, 3, -1], np.int32))


def test_shifts(folder: Path) -> None:
    for build in (op.bitwise_left_shift, op.bitwise_right_shift):
        check(folder, build, np.array([1, 9, 64], np.int32), np.array([3, 1, 2], np.int32))


@pytest.mark.parametrize("build", [op.reduce_logical_and, op.reduce_logical_or])
def test_reductions_of_booleans(folder: Path, build: Callable[..., object]) -> None:
    x = np.array([[True, True], [True, False], [False, False]])
    check(folder, lambda x: build(x, np.array([1], np.int64), False), x)


def test_log_softmax(folder: Path) -> None:
    check(folder, lambda x: op.log_softmax(x, -1), floats(2, 3, 4))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cum_sum(folder: Path, exclusive: bool, reverse: bool) -> None:
    check(folder, lambda x: op.cum_sum(x, np.int64(1), exclusive, reverse), floats(2, 5))


@given(shape=st.lists(st.integers(2, 5), min_size=2, max_size=4), variance=st.booleans())
def test_mvn(folder: Path, shape: list[int], variance: bool) -> None:
    # The CPU plugin runs an MVN over the last dimension, or over all but the first two.
    axes = np.array([-1], np.int64)
    for mode in ("inside_sqrt", "outside_sqrt"):
        check(folder, lambda x, m=mode: op.mvn(x, axes, variance, 1e-5, m), floats(*shape))


@pytest.mark.parametrize("mode", ["max", "min"])
@pytest.mark.parametrize("sort", ["value", "index"])
@given(shape=st.lists(st.integers(3, 6), min_size=1, max_size=3))
def test_top_k(folder: Path, mode: str, sort: str, shape: list[int]) -> None:
    check(folder, lambda x: op.topk(x, np.int64(3), -1, mode, sort), floats(*shape))


def test_top_k_of_equal_elements_takes_the_first(folder: Path) -> None:
    x = np.array([1, 3, 3, 2, 3, 1], np.float32)
    for mode in ("max", "min"):
        check(folder, lambda x, m=mode: op.topk(x, np.int64(2), 0, m, "value", stable=True), x)


def test_non_zero(folder: Path) -> None:
    check(folder, op.non_zero, np.array([[0, 3, 0], [1, 0, 2]], np.int32))


@pytest.mark.parametrize("axis", [-1, 0])
def test_one_hot(folder: Path, axis: int) -> None:
    on, off = np.float32(2), np.float32(-1)
    check(folder, lambda x: op.one_hot(x, np.int64(4), on, off, axis), np.array([1, 3, 0, 7]))


@pytest.mark.parametrize("repeats", [[2, 1, 3], [2], [1, 2, 2, 1]])
def test_tile(folder: Path, repeats: list[int]) -> None:
    check(folder, lambda x: op.tile(x, np.array(repeats, np.int64)), floats(2, 1, 3))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@given(begin=st.tuples(*[st.integers(0, 2)] * 2), end=st.tuples(*[st.integers(0, 2)] * 2))
def test_pad(folder: Path, mode: str, begin: tuple[int, int], end: tuple[int, int]) -> None:
    pads = [np.array(p, np.int64) for p in (begin, end)]
    value = {"arg_pad_value": np.float32(1.5)} if mode == "constant" else {}
    check(folder, lambda x: op.pad(x, *pads, mode, **value), floats(3, 4))


def test_pad_that_takes_away(folder: Path) -> None:
    pads = [np.array(p, np.int64) for p in ([-1, 1], [0, -2])]
    check(folder, lambda x: op.pad(x, *pads, "constant", np.float32(0)), floats(3, 4))


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
    folder: Path,
    begin: list[int],
    end: list[int],
    strides: list[int],
    masks: tuple[list[int], ...],
) -> None:
    bounds = [np.array(b, np.int64) for b in (begin, end, strides)]
    check(folder, lambda x: op.strided_slice(x, *bounds, *masks), floats(2, 5, 3))


@given(axis=st.integers(0, 2), rows=st.integers(1, 4), data=st.data())
def test_gather_elements(folder: Path, axis: int, rows: int, data: st.DataObject) -> None:
    shape = [2, 3, 4]
    shape[axis] = rows
    length = (2, 3, 4)[axis]
    count = int(np.prod(shape))
    drawn = data.draw(st.lists(st.integers(-length, length - 1), min_size=count, max_size=count))
    indices = np.array(drawn, np.int64).reshape(shape)
    check(folder, lambda x: op.gather_elements(x, indices, axis), floats(2, 3, 4))


@pytest.mark.parametrize("batch", [0, 1])
def test_gather_nd(folder: Path, batch: int) -> None:
    indices = np.array([[[0], [2]], [[1], [1]]], np.int64)
    depth = indices if batch else np.array([[1, 2], [0, 0]], np.int64)
    check(folder, lambda x: op.gather_nd(x, depth, batch), floats(2, 3, 4))


def test_scatter_update(folder: Path) -> None:
    rows = np.array([2, 0], np.int64)
    check(
        folder,
        lambda x, u: op.scatter_update(x, rows, u, np.int64(1)),
        floats(2, 4, 3),
        floats(2, 2, 3),
    )


@pytest.mark.parametrize("reduction", ["none", "sum", "prod", "min", "max", "mean"])
@pytest.mark.parametrize("own", [True, False])
def test_scatter_elements_update(folder: Path, reduction: str, own: bool) -> None:
    # With "none" indices differ: which update of one element stays is not defined.
    rows = np.array([[0, 2, -1]] if reduction == "none" else [[1, 1, -1]], np.int64)

    def build(x: object, u: object) -> object:
        return op.scatter_elements_update(x, rows, u, np.int64(1), reduction, own)

    check(folder, build, floats(2, 4), floats(1, 3))


def test_scatter_nd_update(folder: Path) -> None:
    at = np.array([[1], [0]], np.int64)
    for how in ("none", "sum", "sub", "prod", "min", "max"):
        check(
            folder,
            lambda x, u, how=how: op.scatter_nd_update(x, at, u, how),
            floats(3, 4),
            floats(2, 4),
        )


def test_fake_quantize(folder: Path) -> None:
    low, high = np.array([[-1.0], [-0.5]], np.float32), np.array([[1.0], [2.0]], np.float32)
    check(folder, lambda x: op.fake_quantize(x, low, high, low, high, 256), floats(2, 50))
    ends = [np.float32(v) for v in (-1, 1, 0, 255)]
    check(folder, lambda x: op.fake_quantize(x, *ends, 256), floats(2, 50))


@pytest.mark.parametrize("element", ["u8", "i8", "u4", "i4", "f16", "bf16"])
@pytest.mark.parametrize("grouped", [False, True])
def test_compressed_weights(folder: Path, element: str, grouped: bool) -> None:
    """Constants of each type, with scales and zero points as the exporter writes them."""
    shape = (6, 3, 8) if grouped else (6, 24)
    low, high = (0, 16) if element == "u4" else (-8, 8)
    stored = RANDOM.randint(low, high, shape)
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
    check(folder, build, floats(5, 24) / 100, rtol=2e-3)


def test_every_op_is_tested_here_or_is_no_op_of_an_ir() -> None:
    """Our passes make some; state and constants are tested with whole models."""
    source = Path(__file__).read_text()
    ours = {"RMS", "RoPE", "Dequantize", "Constant", "ReadValue", "Assign"}
    snake = {
        "ScaledDotProductAttention": "scaled_dot_product_attention",
        "GatherND": "gather_nd",
        "ScatterNDUpdate": "scatter_nd_update",
        "MVN": "mvn",
        "TopK": "topk",
        "HSwish": "hswish",
        "ReduceL1": "reduce_l1",
        "ReduceL2": "reduce_l2",
    }
    for name in set(OPS) - ours:
        words = snake.get(name) or "".join("_" + c.lower() if c.isupper() else c for c in name)[1:]
        assert f"op.{words.replace('mat_mul', 'matmul')}" in source, name
