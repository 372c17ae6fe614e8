"""Comparison of gather, scatter and indexing ops with OpenVINO, in drawn cases.

A case is a function of draws; it returns a function that builds the op, and the op's inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
import openvino.opset1 as op_1
import openvino.opset3 as op_3
import openvino.opset15 as op
import pytest
from hypothesis import given
from hypothesis import strategies as st

Case = Callable[..., tuple[Any, ...]]
"""Function from draws to a builder of the op, its inputs, and indices of required constants."""


def gather(draws: Any) -> tuple[Any, ...]:
    data = draws.numbers(draws.shape())
    axis = draws.whole(0, data.ndim - 1)
    # With a single batch the CPU plugin reads beyond the tensor, and may crash.
    batch = draws.one_of(0, *(n for n in range(1, axis + 1) if prod(data.shape[:n]) > 1))
    length = data.shape[axis]
    shape = [*data.shape[:batch], *draws.shape(least=0, most=2, longest=3)]
    rows = draws.integers(shape, -length, length - 1, draws.one_of("i4", "i8"))
    along = draws.vector(draws.one_of(axis, axis - data.ndim))
    if batch == 0 and draws.flag():  # opset1 does not accept negative indices
        return op_1.gather, [data, rows % length, along]
    return lambda x, rows, along: op.gather(x, rows, along, batch), [data, rows, along]


def gather_elements(draws: Any) -> tuple[Any, ...]:
    data = draws.numbers(draws.shape())
    axis = draws.axis(data.ndim)
    shape = list(data.shape)
    shape[axis] = draws.whole(1, 5)
    length = data.shape[axis]
    rows = draws.integers(shape, -length, length - 1, draws.one_of("i4", "i8"))
    return lambda x, rows: op.gather_elements(x, rows, axis), [data, rows]


def gather_nd(draws: Any) -> tuple[Any, ...]:
    data = draws.numbers(draws.shape())
    batch = draws.whole(0, data.ndim - 1)
    depth = draws.whole(1, data.ndim - batch)
    outer = [*data.shape[:batch], *draws.shape(least=0, most=2, longest=3)]
    at = _tuples(draws, outer, data.shape[batch : batch + depth])
    return lambda x, at: op.gather_nd(x, at, batch), [data, at]


def _tuples(draws: Any, shape: list[int], dims: tuple[int, ...]) -> np.ndarray:
    """Draw an index tuple for each element of a shape, counted from either end."""
    kind = draws.one_of("i4", "i8")
    return np.stack([draws.integers(shape, -d, d - 1, kind) for d in dims], -1)


def scatter_update(draws: Any) -> tuple[Any, ...]:
    """Draw different rows: the result of two updates of one row is undefined."""
    data = draws.numbers(draws.shape())
    axis = draws.axis(data.ndim)
    along = axis % data.ndim
    rows = np.array(draws.order(data.shape[axis])[: draws.whole(1, data.shape[axis])])
    rows = draws.vector(rows.reshape(draws.one_of((-1,), (1, -1), (-1, 1))))
    shape = (*data.shape[:along], *rows.shape, *data.shape[along + 1 :])
    updates = draws.integers(shape).astype(data.dtype)
    return op.scatter_update, [data, rows, updates, draws.vector(axis)]


def scatter_elements_update(draws: Any) -> tuple[Any, ...]:
    """Draw updates; without a reduction all indices along the axis differ."""
    data = draws.floats(draws.shape())
    axis = draws.axis(data.ndim)
    how = draws.one_of("none", "sum", "prod", "min", "max", "mean")
    length = data.shape[axis]
    shape = [draws.whole(1, d) for d in data.shape]
    if how == "none":
        order = np.argsort(draws.floats([*data.shape]), axis)
        rows = order[tuple(slice(d) for d in shape)]
        rows = np.where(draws.integers(shape, 0, 1) > 0, rows, rows - length)
    else:
        rows = draws.integers(shape, -length, length - 1)
    inputs = [data, draws.vector(rows), draws.floats(shape), draws.vector(axis)]
    own = draws.flag()
    if how == "none" and draws.flag():
        return op_3.scatter_elements_update, inputs
    return partial(op.scatter_elements_update, reduction=how, use_init_val=own), inputs


def scatter_nd_update(draws: Any) -> tuple[Any, ...]:
    """Draw updates; without a reduction all tuples differ."""
    data = draws.numbers(draws.shape())
    depth = draws.whole(1, data.ndim)
    how = draws.one_of("none", "sum", "sub", "prod", "min", "max")
    places = np.stack(list(np.ndindex(data.shape[:depth])))
    if how == "none":
        count = draws.whole(1, min(6, len(places)))
        at = draws.vector(draws.seed().permutation(places)[:count])
    else:
        at = _tuples(draws, draws.shape(least=1, most=2, longest=3), data.shape[:depth])
        at = np.where(at < 0, at + np.array(data.shape[:depth], at.dtype), at)
    updates = draws.integers([*at.shape[:-1], *data.shape[depth:]]).astype(data.dtype)
    return partial(op.scatter_nd_update, reduction=how), [data, at, updates]


def non_zero(draws: Any) -> tuple[Any, ...]:
    x = draws.integers(draws.shape(), 0, 1, draws.one_of("f4", "i4", "i8"))
    x.flat[0] = 1  # the CPU plugin returns another shape for empty results
    element = draws.one_of("i32", "i64")
    return lambda x: op.non_zero(x, element), [x]


def one_hot(draws: Any) -> tuple[Any, ...]:
    """Draw indices within and beyond the depth."""
    depth = draws.whole(1, 5)
    indices = draws.integers(draws.shape(most=3), 0, 6, draws.one_of("i4", "i8"))
    axis = draws.axis(indices.ndim + 1)
    on, off = (np.array(draws.whole(-3, 3), draws.one_of("f4")) for _ in range(2))
    return partial(_one_hot, axis), [indices, draws.vector(depth), on, off]


def _one_hot(axis: int, *operands: object) -> object:
    return op.one_hot(*operands, axis)


CASES: dict[str, Case] = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "ScatterUpdate": scatter_update,
    "ScatterElementsUpdate": scatter_elements_update,
    "ScatterNDUpdate": scatter_nd_update,
    "NonZero": non_zero,
    "OneHot": one_hot,
}
"""Cases by type of layer."""


@pytest.mark.matrix
@pytest.mark.parametrize("kind", CASES)
@given(data=st.data())
def test_indexing(check_drawn: Callable[..., None], kind: str, data: st.DataObject) -> None:
    check_drawn(kind, data, CASES[kind])
