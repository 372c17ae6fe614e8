"""Ops that move, join, cut and find elements mean what the real OpenVINO says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino.opset1 as op_1
import openvino.opset15 as op
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler_layer.dialects.ov import OPS
from compiler_layer.testing.values import floats

Check = Callable[..., None]
"""Builds one op of parameters and compares: ``check(build, *inputs)``."""


SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("shape", "pattern", "special"),
    [((2, 3, 4), [0, -1], True), ((2, 3, 4), [4, 6], False), ((2, 3, 4), [0, 0, 2, 2], True)],
)
def test_reshape(check: Check, shape: tuple[int, ...], pattern: list[int], special: bool) -> None:
    check(lambda x: op.reshape(x, np.array(pattern, np.int64), special), floats(*shape))


def test_transpose_unsqueeze_squeeze(check: Check) -> None:
    x = floats(2, 1, 3)
    check(lambda x: op.transpose(x, np.array([2, 0, 1], np.int64)), x)
    check(lambda x: op.unsqueeze(x, np.array([0, -1], np.int64)), x)
    check(lambda x: op.squeeze(x, np.array([1], np.int64)), x)
    check(op.squeeze, x)
    check(lambda x: op_1.squeeze(x, np.array([0, 1], np.int64)), x)


@pytest.mark.parametrize("mode", ["NUMPY", "BIDIRECTIONAL"])
def test_broadcast(check: Check, mode: str) -> None:
    target = np.array([2, 3, 4], np.int64)
    check(lambda x: op.broadcast(x, target, broadcast_spec=mode), floats(3, 1))


def test_concat_split_variadic_split(check: Check) -> None:
    check(lambda a, b: op.concat([a, b], -1), floats(2, 3), floats(2, 1))
    check(lambda x: op.split(x, np.int64(1), 2), floats(2, 4))
    lengths = np.array([1, -1, 2], np.int64)
    check(lambda x: op.variadic_split(x, np.int64(-1), lengths), floats(2, 6))


@given(start=st.integers(-6, 6), stop=st.integers(-6, 6), step=st.sampled_from([1, 2, -1]))
def test_slice(check: Check, start: int, stop: int, step: int) -> None:
    bounds = [np.array([v], np.int64) for v in (start, stop, step, 1)]
    if len(range(5)[slice(start, stop, step)]) == 0:
        return  # OpenVINO's CPU plugin gives empty results a shape of their own
    check(lambda x: op.slice(x, *bounds), floats(2, 5))


@pytest.mark.parametrize(("axis", "indices"), [(0, [[1, 0]]), (1, [2]), (-1, [-1, 0])])
def test_gather(check: Check, axis: int, indices: list[int]) -> None:
    rows = np.array(indices, np.int64)
    check(lambda x: op.gather(x, rows, np.int64(axis)), floats(2, 3))


def test_gather_with_batch_dimensions(check: Check) -> None:
    rows = np.array([[0, 2], [1, 1]], np.int64)
    check(lambda x: op.gather(x, rows, np.int64(1), 1), floats(2, 3, 4))


def test_shape_of_and_range(check: Check) -> None:
    check(op.shape_of, floats(2, 3))
    check(lambda x: op.range(np.int64(2), x, np.int64(3), "i64"), np.array(11, np.int64))


def test_non_zero(check: Check) -> None:
    check(op.non_zero, np.array([[0, 3, 0], [1, 0, 2]], np.int32))


@pytest.mark.parametrize("axis", [-1, 0])
def test_one_hot(check: Check, axis: int) -> None:
    on, off = np.float32(2), np.float32(-1)
    check(lambda x: op.one_hot(x, np.int64(4), on, off, axis), np.array([1, 3, 0, 7]))


@pytest.mark.parametrize("repeats", [[2, 1, 3], [2], [1, 2, 2, 1]])
def test_tile(check: Check, repeats: list[int]) -> None:
    check(lambda x: op.tile(x, np.array(repeats, np.int64)), floats(2, 1, 3))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@given(begin=st.tuples(*[st.integers(0, 2)] * 2), end=st.tuples(*[st.integers(0, 2)] * 2))
def test_pad(check: Check, mode: str, begin: tuple[int, int], end: tuple[int, int]) -> None:
    pads = [np.array(p, np.int64) for p in (begin, end)]
    value = {"arg_pad_value": np.float32(1.5)} if mode == "constant" else {}
    check(lambda x: op.pad(x, *pads, mode, **value), floats(3, 4))


def test_pad_that_takes_away(check: Check) -> None:
    pads = [np.array(p, np.int64) for p in ([-1, 1], [0, -2])]
    check(lambda x: op.pad(x, *pads, "constant", np.float32(0)), floats(3, 4))


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


@given(axis=st.integers(0, 2), rows=st.integers(1, 4), data=st.data())
def test_gather_elements(check: Check, axis: int, rows: int, data: st.DataObject) -> None:
    shape = [2, 3, 4]
    shape[axis] = rows
    length = (2, 3, 4)[axis]
    count = int(np.prod(shape))
    drawn = data.draw(st.lists(st.integers(-length, length - 1), min_size=count, max_size=count))
    indices = np.array(drawn, np.int64).reshape(shape)
    check(lambda x: op.gather_elements(x, indices, axis), floats(2, 3, 4))


@pytest.mark.parametrize("batch", [0, 1])
def test_gather_nd(check: Check, batch: int) -> None:
    indices = np.array([[[0], [2]], [[1], [1]]], np.int64)
    depth = indices if batch else np.array([[1, 2], [0, 0]], np.int64)
    check(lambda x: op.gather_nd(x, depth, batch), floats(2, 3, 4))


def test_scatter_update(check: Check) -> None:
    rows = np.array([2, 0], np.int64)
    check(
        lambda x, u: op.scatter_update(x, rows, u, np.int64(1)),
        floats(2, 4, 3),
        floats(2, 2, 3),
    )


@pytest.mark.parametrize("reduction", ["none", "sum", "prod", "min", "max", "mean"])
@pytest.mark.parametrize("own", [True, False])
def test_scatter_elements_update(check: Check, reduction: str, own: bool) -> None:
    # With "none" indices differ: which update of one element stays is not defined.
    rows = np.array([[0, 2, -1]] if reduction == "none" else [[1, 1, -1]], np.int64)

    def build(x: object, u: object) -> object:
        return op.scatter_elements_update(x, rows, u, np.int64(1), reduction, own)

    check(build, floats(2, 4), floats(1, 3))


def test_scatter_nd_update(check: Check) -> None:
    at = np.array([[1], [0]], np.int64)
    for how in ("none", "sum", "sub", "prod", "min", "max"):
        check(
            lambda x, u, how=how: op.scatter_nd_update(x, at, u, how),
            floats(3, 4),
            floats(2, 4),
        )


@given(shape=SHAPES, data=st.data())
def test_transposition_and_shape_of_any_rank(
    check: Check, shape: list[int], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    check(lambda x: op.transpose(x, np.array(order, np.int64)), floats(*shape))
    check(lambda x: op.reshape(x, np.array([-1, shape[-1]], np.int64), False), floats(*shape))
    check(op.shape_of, floats(*shape))


@given(shape=SHAPES, data=st.data())
def test_joining_and_cutting_along_any_axis(
    check: Check, shape: list[int], data: st.DataObject
) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    longer = [2 * d if i == axis else d for i, d in enumerate(shape)]
    check(lambda a, b: op.concat([a, b], axis), floats(*shape), floats(*longer))
    check(lambda x: op.split(x, np.int64(axis), 2), floats(*longer))
    check(lambda x: op.unsqueeze(x, np.array([axis], np.int64)), floats(*shape))


@given(shape=SHAPES, data=st.data())
def test_gather_at_any_indices(check: Check, shape: list[int], data: st.DataObject) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    length = shape[axis]
    drawn = data.draw(st.lists(st.integers(-length, length - 1), min_size=1, max_size=6))
    rows = np.array(drawn, np.int64)
    check(lambda x: op.gather(x, rows, np.int64(axis)), floats(*shape))


@given(shape=SHAPES, data=st.data())
def test_repetition_of_any_shape(check: Check, shape: list[int], data: st.DataObject) -> None:
    repeats = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    check(lambda x: op.tile(x, np.array(repeats, np.int64)), floats(*shape))
    target = np.array([2, *shape], np.int64)
    check(lambda x: op.broadcast(x, target), floats(*shape))


def test_every_op_is_tested_here_or_is_no_op_of_an_ir() -> None:
    """Our passes make some; state and constants are tested with whole models."""
    source = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
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
