"""Ops that look at whole rows or matrices mean what the real OpenVINO says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino.opset15 as op
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler_layer.testing.values import floats

Check = Callable[..., None]
"""Builds one op of parameters and compares: ``check(build, *inputs)``."""


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


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize(("axes", "keep"), [([-1], True), ([0], False), ([0, 2], True)])
def test_reductions(check: Check, name: str, axes: list[int], keep: bool) -> None:
    build = REDUCTIONS[name]
    check(lambda x: build(x, np.array(axes, np.int64), keep), floats(2, 3, 4))


@pytest.mark.parametrize("axis", [-1, 1])
def test_softmax(check: Check, axis: int) -> None:
    check(lambda x: op.softmax(x, axis), floats(2, 3, 4))


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
    check: Check, a: tuple[int, ...], b: tuple[int, ...], flags: tuple[bool, bool]
) -> None:
    check(lambda x, y: op.matmul(x, y, *flags), floats(*a), floats(*b))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_scaled_dot_product_attention(check: Check, masked: bool, causal: bool) -> None:
    if masked and causal:
        return  # the mask is ignored then
    inputs = [floats(1, 2, 3, 8), floats(1, 2, 3, 8), floats(1, 2, 3, 8)]
    if masked:
        inputs.append(floats(1, 1, 3, 3))
    check(lambda *x: op.scaled_dot_product_attention(*x, causal=causal), *inputs)


@pytest.mark.parametrize("build", [op.reduce_logical_and, op.reduce_logical_or])
def test_reductions_of_booleans(check: Check, build: Callable[..., object]) -> None:
    x = np.array([[True, True], [True, False], [False, False]])
    check(lambda x: build(x, np.array([1], np.int64), False), x)


def test_log_softmax(check: Check) -> None:
    check(lambda x: op.log_softmax(x, -1), floats(2, 3, 4))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cum_sum(check: Check, exclusive: bool, reverse: bool) -> None:
    check(lambda x: op.cum_sum(x, np.int64(1), exclusive, reverse), floats(2, 5))


@given(shape=st.lists(st.integers(2, 5), min_size=2, max_size=4), variance=st.booleans())
def test_mvn(check: Check, shape: list[int], variance: bool) -> None:
    # The CPU plugin runs an MVN over the last dimension, or over all but the first two.
    axes = np.array([-1], np.int64)
    for mode in ("inside_sqrt", "outside_sqrt"):
        check(lambda x, m=mode: op.mvn(x, axes, variance, 1e-5, m), floats(*shape))


@pytest.mark.parametrize("mode", ["max", "min"])
@pytest.mark.parametrize("sort", ["value", "index"])
@given(shape=st.lists(st.integers(3, 6), min_size=1, max_size=3))
def test_top_k(check: Check, mode: str, sort: str, shape: list[int]) -> None:
    check(lambda x: op.topk(x, np.int64(3), -1, mode, sort), floats(*shape))


def test_top_k_of_equal_elements_takes_the_first(check: Check) -> None:
    x = np.array([1, 3, 3, 2, 3, 1], np.float32)
    for mode in ("max", "min"):
        check(lambda x, m=mode: op.topk(x, np.int64(2), 0, m, "value", stable=True), x)


@pytest.mark.parametrize("name", REDUCTIONS)
@given(shape=SHAPES, keep=st.booleans(), data=st.data())
def test_reductions_of_any_shape(
    check: Check, name: str, shape: list[int], keep: bool, data: st.DataObject
) -> None:
    rank = len(shape)
    axes = data.draw(
        st.lists(st.integers(-rank, rank - 1), min_size=1, unique_by=lambda a: a % rank)
    )
    build = REDUCTIONS[name]
    check(lambda x: build(x, np.array(axes, np.int64), keep), floats(*shape), rtol=5e-5)


@given(shape=SHAPES, data=st.data())
def test_softmax_and_sums_along_any_axis(
    check: Check, shape: list[int], data: st.DataObject
) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    check(lambda x: op.softmax(x, axis), floats(*shape))
    check(lambda x: op.log_softmax(x, axis), floats(*shape))
    check(lambda x: op.cum_sum(x, np.int64(axis)), floats(*shape))


@given(
    outer=st.lists(st.integers(1, 3), max_size=2),
    dims=st.tuples(*[st.integers(1, 5)] * 3),
    flags=st.tuples(st.booleans(), st.booleans()),
    shared=st.booleans(),
)
def test_matmul_of_any_shape(
    check: Check,
    outer: list[int],
    dims: tuple[int, int, int],
    flags: tuple[bool, bool],
    shared: bool,
) -> None:
    m, k, n = dims
    a = [*outer, *((k, m) if flags[0] else (m, k))]
    b = [*([] if shared else outer), *((n, k) if flags[1] else (k, n))]
    check(lambda x, y: op.matmul(x, y, *flags), floats(*a), floats(*b))


@given(heads=st.integers(1, 3), rows=st.integers(1, 5), keys=st.integers(1, 6))
def test_attention_of_any_shape(check: Check, heads: int, rows: int, keys: int) -> None:
    q, k = floats(1, heads, rows, 8), floats(1, heads, keys, 8)
    v, mask = floats(1, heads, keys, 8), floats(1, 1, rows, keys)
    check(op.scaled_dot_product_attention, q, k, v, mask)
