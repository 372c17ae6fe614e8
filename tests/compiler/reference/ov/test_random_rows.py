"""Comparison of ops over rows and matrices with OpenVINO, in drawn cases.

A case is a function of draws; it returns a function that builds the op, and the op's inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import openvino.opset1 as op_1
import openvino.opset15 as op
import pytest
from hypothesis import given
from hypothesis import strategies as st

Case = Callable[..., tuple[Any, ...]]
"""Function from draws to a builder of the op, its inputs, and indices of required constants."""


def reduction(build: Callable[..., object], draws: Any) -> tuple[Any, ...]:
    x = draws.floats(draws.shape(), draws.one_of("f4", "f2"))
    return partial(build, keep_dims=draws.flag()), [x, _axes(draws, x.ndim)]


def reduction_of_any_type(build: Callable[..., object], draws: Any) -> tuple[Any, ...]:
    x = draws.numbers(draws.shape())
    return partial(build, keep_dims=draws.flag()), [x, _axes(draws, x.ndim)]


def reduction_of_booleans(build: Callable[..., object], draws: Any) -> tuple[Any, ...]:
    x = draws.integers(draws.shape(), 0, 1, "?")
    return partial(build, keep_dims=draws.flag()), [x, _axes(draws, x.ndim)]


def _axes(draws: Any, rank: int) -> np.ndarray:
    return draws.vector(draws.axes(rank))


def soft_max(draws: Any) -> tuple[Any, ...]:
    x = draws.floats(draws.shape(), draws.one_of("f4", "f2")) * 3
    if draws.flag():
        axis = draws.whole(0, x.ndim - 1)  # opset1 does not accept negative axes
        return lambda x: op_1.softmax(x, axis), [x]
    axis = draws.axis(x.ndim)
    return lambda x: op.softmax(x, axis), [x]


def log_softmax(draws: Any) -> tuple[Any, ...]:
    x = draws.floats(draws.shape()) * 3
    axis = draws.axis(x.ndim)
    return lambda x: op.log_softmax(x, axis), [x]


def cum_sum(draws: Any) -> tuple[Any, ...]:
    x = draws.numbers(draws.shape())
    build = partial(op.cum_sum, exclusive=draws.flag(), reverse=draws.flag())
    return build, [x, draws.vector(draws.axis(x.ndim))]


def mvn(draws: Any) -> tuple[Any, ...]:
    """Draw axes: the last dimension, as the CPU plugin supports, or all but the first two."""
    x = draws.floats(draws.shape(least=2, longest=4)) * 2
    axes = [-1] if draws.flag() or x.ndim == 2 else list(range(2, x.ndim))
    mode, variance = draws.one_of("inside_sqrt", "outside_sqrt"), draws.flag()
    # With a single element the result is rounding noise over epsilon.
    return lambda x, axes: op.mvn(x, axes, variance, 1e-2, mode), [x, draws.vector(axes)], (1,)


def group_normalization(draws: Any) -> tuple[Any, ...]:
    x = draws.floats(draws.shape(least=3, longest=4)) * 2
    channels = x.shape[1]
    groups = draws.one_of(*(n for n in range(1, channels + 1) if channels % n == 0))
    inputs = [x, draws.floats([channels]), draws.floats([channels])]
    return lambda *each: op.group_normalization(*each, groups, 1e-2), inputs


def matmul(draws: Any) -> tuple[Any, ...]:
    """Draw matrices with outer dimensions that broadcast, and vectors on either side."""
    m, k, n = (draws.whole(1, 5) for _ in range(3))
    flags = draws.flag(), draws.flag()
    outer = draws.shape(least=0, most=2, longest=3)
    a = [*outer, *((k, m) if flags[0] else (m, k))]
    b = [*draws.broadcast_to(outer), *((n, k) if flags[1] else (k, n))]
    if draws.flag():
        a, b = ([k], b) if draws.flag() else (a, [k])
    kind = draws.one_of("f4", "f2")
    return lambda x, y: op.matmul(x, y, *flags), [draws.floats(a, kind), draws.floats(b, kind)]


def convolution(draws: Any) -> tuple[Any, ...]:
    """Draw convolutions over one or two axes, with explicit or automatic padding."""
    channels, filters = draws.whole(1, 3), draws.whole(1, 3)
    return _slid(draws, op.convolution, channels, [filters, channels])


def group_convolution(draws: Any) -> tuple[Any, ...]:
    """Draw group convolutions, most of them depthwise."""
    groups, taken, made = draws.whole(1, 4), draws.one_of(1, 1, 2), draws.one_of(1, 1, 2)
    return _slid(draws, op.group_convolution, groups * taken, [groups, made, taken])


def max_pool(draws: Any) -> tuple[Any, ...]:
    x, sizes, dilations = _pooled(draws)
    kind, axis = draws.one_of("i32", "i64"), draws.whole(0, 2)
    rest = {"rounding_type": "floor", "auto_pad": "explicit"}
    return lambda x: op.max_pool(
        x, sizes[1], dilations, *sizes[2:], sizes[0], index_element_type=kind, axis=axis, **rest
    ), [x]


def avg_pool(draws: Any) -> tuple[Any, ...]:
    x, sizes, _ = _pooled(draws, dilated=False)
    excluded = draws.flag()
    return lambda x: op.avg_pool(x, *sizes[1:], sizes[0], excluded), [x]


def _pooled(draws: Any, dilated: bool = True) -> tuple[np.ndarray, list[list[int]], list[int]]:
    """Draw an operand; kernel, strides, pads before and after; and dilations."""
    rank = draws.whole(1, 2)
    kernel, strides = ([draws.whole(1, 3) for _ in range(rank)] for _ in range(2))
    dilations = [draws.whole(1, 2) if dilated else 1 for _ in range(rank)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = [[draws.whole(0, k // 2) for k in kernel] for _ in range(2)]
    sizes = [r + draws.whole(0, 4) for r in reach]
    x = draws.floats([draws.whole(1, 2), draws.whole(1, 3), *sizes])
    return x, [kernel, strides, *pads], dilations


def _slid(draws: Any, build: Any, channels: int, outer: list[int]) -> tuple[Any, ...]:
    rank, batch = draws.whole(1, 2), draws.whole(1, 3)
    kernel = [draws.whole(1, 3) for _ in range(rank)]
    dilations = [draws.whole(1, 2) for _ in range(rank)]
    sizes = [(k - 1) * d + draws.whole(1, 5) for k, d in zip(kernel, dilations, strict=True)]
    strides, pads, more = ([draws.whole(n, 3) for _ in range(rank)] for n in (1, 0, 0))
    x = draws.floats([batch, channels, *sizes])
    auto = draws.one_of("explicit", "same_upper", "same_lower", "valid")
    return lambda x, w: build(x, w, strides, pads, more, dilations, auto), [
        x,
        draws.floats([*outer, *kernel]),
    ]


def attention(draws: Any) -> tuple[Any, ...]:
    """Draw additive or boolean masks that broadcast, a scale, or a causal mask."""
    heads, rows, keys = (draws.whole(1, 3) for _ in range(3))
    width, wide = draws.one_of(4, 8), draws.one_of(4, 8)
    batch = draws.shape(least=0, most=1, longest=3)
    queried, kept = draws.one_of(batch, [1] * len(batch)), draws.one_of(batch, [1] * len(batch))
    q = draws.floats([*queried, heads, rows, width])
    k = draws.floats([*kept, heads, keys, width])
    v = draws.floats([*kept, heads, keys, wide])
    causal = draws.flag()
    build = partial(op.scaled_dot_product_attention, causal=causal)
    if causal or draws.flag():
        return build, [q, k, v]
    outer = queried if draws.flag() else [1] * len(batch)
    mask = draws.floats([*outer, draws.one_of(1, heads), rows, keys])
    if draws.flag():
        mask = mask > 0
        mask[..., 0] = True  # a fully masked row is undefined
    return build, [q, k, v, mask, *([np.float32(0.3)] if draws.flag() else [])]


def top_k(draws: Any) -> tuple[Any, ...]:
    """Draw different numbers: the choice among equal ones is undefined."""
    shape = draws.shape()
    axis = draws.axis(len(shape))
    mode, sort = draws.one_of("max", "min"), draws.one_of("value", "index")
    element = draws.one_of("i32", "i64")
    x = draws.seed().permutation(int(np.prod(shape))).reshape(shape)
    k = draws.vector(draws.whole(1, shape[axis]))
    kind = draws.one_of("f4", "i4")
    build = partial(op.topk, axis=axis, mode=mode, sort=sort, index_element_type=element)
    return lambda x, k: build(x, k), [x.astype(kind), k]


_OF_FLOATS = {
    "ReduceMean": op.reduce_mean,
    "ReduceL1": op.reduce_l1,
    "ReduceL2": op.reduce_l2,
    "ReduceProd": op.reduce_prod,
}
_OF_NUMBERS = {
    "ReduceSum": op.reduce_sum,
    "ReduceMax": op.reduce_max,
    "ReduceMin": op.reduce_min,
}

CASES: dict[str, Case] = {
    **{kind: partial(reduction, build) for kind, build in _OF_FLOATS.items()},
    **{kind: partial(reduction_of_any_type, build) for kind, build in _OF_NUMBERS.items()},
    "ReduceLogicalAnd": partial(reduction_of_booleans, op.reduce_logical_and),
    "ReduceLogicalOr": partial(reduction_of_booleans, op.reduce_logical_or),
    "SoftMax": soft_max,
    "LogSoftmax": log_softmax,
    "CumSum": cum_sum,
    "MVN": mvn,
    "GroupNormalization": group_normalization,
    "MatMul": matmul,
    "Convolution": convolution,
    "GroupConvolution": group_convolution,
    "MaxPool": max_pool,
    "AvgPool": avg_pool,
    "ScaledDotProductAttention": attention,
    "TopK": top_k,
}
"""Cases by type of layer."""


@pytest.mark.matrix
@pytest.mark.parametrize("kind", CASES)
@given(data=st.data())
def test_rows(check_drawn: Callable[..., None], kind: str, data: st.DataObject) -> None:
    check_drawn(kind, data, CASES[kind])
