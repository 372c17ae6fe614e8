"""Row-wise models compute the same in tiles; ops that mix rows are detected."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import activation, attention, elementwise, matmul, reduce, shape
from compiler_layer.dialects.ov.op import bool_attr, float_attr, int_attr
from compiler_layer.dialects.ov.types import shape_of, tensor
from compiler_layer.model import Model
from compiler_layer.partition.compiled import LINK_PREFIX
from compiler_layer.partition.parts import cut_parts
from compiler_layer.partition.row_parts import row_parts
from compiler_layer.partition.row_wise import Rows, find_rows, row_count, tile_model
from compiler_layer.reference.interpreter import Interpreter

YES, NO = bool_attr(True), bool_attr(False)

Step = Callable[[GraphBuilder, SSAValue, SSAValue, SSAValue], SSAValue]
"""Computes a value from two values with rows, [1, R, C], and a matrix [C, C]."""


def numbers(*dims: int) -> np.ndarray:
    """Return f64 numbers: products of tiles round differently, but far below any tolerance."""
    return np.random.default_rng(sum(dims)).standard_normal(dims)


def width(x: SSAValue) -> int:
    return shape_of(x)[-1]


def split(g: GraphBuilder, x: SSAValue) -> SSAValue:
    first, second = g.split(x, -1, [1, width(x) - 1])
    return g.concat([second, first], 2)


def normed(g: GraphBuilder, x: SSAValue, axis: int) -> SSAValue:
    eps = {"eps": float_attr(1e-3), "eps_mode": StringAttr("INSIDE_SQRT")}
    return g.op(reduce.MVN, x, g.ints(axis), normalize_variance=YES, **eps)


def length(g: GraphBuilder, x: SSAValue) -> SSAValue:
    dims = g.convert(g.op(shape.ShapeOf, x, output_type=StringAttr("i64")), "f64")
    return g.op(reduce.ReduceProd, dims, g.ints(0), keep_dims=YES)


BY_ITSELF: dict[str, Step] = {
    "sine": lambda g, x, y, w: g.op(elementwise.Sin, x),
    "gate": lambda g, x, y, w: g.op(elementwise.Multiply, g.op(activation.Sigmoid, x), y),
    "residual": lambda g, x, y, w: g.op(elementwise.Add, x, y),
    "product": lambda g, x, y, w: g.matmul(x, g.constant(numbers(width(x), width(x))), True),
    "given matrix": lambda g, x, y, w: g.matmul(x, w, False),
    "bias": lambda g, x, y, w: g.op(elementwise.Add, x, g.constant(numbers(1, 1, width(x)))),
    "factors": lambda g, x, y, w: g.op(elementwise.Multiply, g.constant(numbers(width(x))), x),
    "norm": lambda g, x, y, w: g.op(attention.RMS, x, [], epsilon=float_attr(1e-5)),
    "layer norm": lambda g, x, y, w: normed(g, x, -1),
    "softmax": lambda g, x, y, w: g.op(reduce.Softmax, x, axis=int_attr(-1)),
    "mean": lambda g, x, y, w: g.op(
        elementwise.Add, x, g.op(reduce.ReduceMean, y, g.ints(2), keep_dims=YES)
    ),
    "split": lambda g, x, y, w: split(g, x),
    "slice": lambda g, x, y, w: g.concat([g.slice(x, 2, 1), g.slice(y, 2, 0, 1)], -1),
    "half": lambda g, x, y, w: g.convert(g.convert(x, "f16"), "f64"),
}
"""Row-wise steps."""

MIXING: dict[str, Step] = {
    "table": lambda g, x, y, w: g.op(elementwise.Add, x, g.constant(numbers(*shape_of(x)[1:]))),
    "sum of rows": lambda g, x, y, w: g.op(
        elementwise.Add, x, g.op(reduce.ReduceSum, y, g.ints(1), keep_dims=YES)
    ),
    "norm of rows": lambda g, x, y, w: normed(g, x, 1),
    "softmax of rows": lambda g, x, y, w: g.op(reduce.Softmax, x, axis=int_attr(-2)),
    "scores": lambda g, x, y, w: g.matmul(g.matmul(x, y, True), x, False),
    "gram": lambda g, x, y, w: g.matmul(
        x, g.op(matmul.MatMul, x, y, transpose_a=YES, transpose_b=NO), False
    ),
    "attention": lambda g, x, y, w: g.reshape(
        g.op(
            attention.ScaledDotProductAttention,
            *(g.unsqueeze(one, 0) for one in (x, y, y)),
            [],
            causal=YES,
        ),
        0,
        -1,
        width(x),
    ),
    "turned": lambda g, x, y, w: g.op(
        elementwise.Add, g.reshape(g.transpose(y, 0, 2, 1), *shape_of(x)), x
    ),
    "folded": lambda g, x, y, w: g.op(
        elementwise.Sin, g.reshape(g.reshape(x, 1, 1, -1), *shape_of(x))
    ),
    "other end": lambda g, x, y, w: g.concat([g.slice(x, 1, 1), g.slice(x, 1, 0, 1)], 1),
    "cumulative": lambda g, x, y, w: g.op(reduce.CumSum, x, g.scalar(1), exclusive=NO, reverse=NO),
    "length": lambda g, x, y, w: g.op(elementwise.Multiply, x, length(g, y)),
}
"""Steps that mix rows."""


def block(steps: list[Step], count: int, channels: int) -> Model:
    """Build steps one after the other, each from the values before it."""
    kinds = [("x", (1, count, channels)), ("y", (1, count, channels)), ("w", (channels, channels))]
    model, (x, y, w) = Model.build([(name, tensor("f64", dims)) for name, dims in kinds])
    g = GraphBuilder(model)
    for step in steps:
        x, y = step(g, x, y, w), x
    model.set_outputs([("last", x), ("last but one", y)])
    return model


def in_tiles(model: Model, rows: Rows, size: int, inputs: dict[str, np.ndarray]) -> dict:
    """Run tiles of ``size`` rows; the last one may overlap the one before."""
    tile = tile_model(model, rows, size)
    tile.verify()
    found = {port.name: np.empty(shape_of(port.value), np.float64) for port in model.outputs}
    sliced = {port.name for port in model.inputs if port.value in rows.values}
    for begin in range(0, rows.count, size):
        begin = min(begin, rows.count - size)
        own = np.s_[..., begin : begin + size, :]
        given = {name: value[own] if name in sliced else value for name, value in inputs.items()}
        for name, value in Interpreter(tile).run(given).items():
            found[name][own] = value
    return found


@given(st.data())
def test_row_wise_models_compute_the_same_rows_in_tiles(data: st.DataObject) -> None:
    """More mixing steps make fewer models row-wise; rows and channels may be equally many."""
    steps = data.draw(
        st.lists(st.sampled_from([*BY_ITSELF] * 3 + [*MIXING]), min_size=1, max_size=5)
    )
    count, channels = data.draw(st.integers(2, 5)), data.draw(st.integers(2, 5))
    model = block([(BY_ITSELF | MIXING)[name] for name in steps], count, channels)
    rows = find_rows(model)
    if all(name in BY_ITSELF for name in steps):
        assert rows is not None
    if rows is None:
        return
    inputs = {port.name: numbers(*shape_of(port.value)) for port in model.inputs}
    whole = Interpreter(model).run(inputs)
    tiles = in_tiles(model, rows, data.draw(st.integers(1, count)), inputs)
    for name, value in whole.items():
        assert np.allclose(tiles[name], value, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", BY_ITSELF)
def test_a_row_wise_step_is_accepted(name: str) -> None:
    rows = find_rows(block([BY_ITSELF[name]], 4, 3))
    assert rows is not None
    assert rows.count == 4


@pytest.mark.parametrize("name", MIXING)
@pytest.mark.parametrize("dims", [(4, 3), (4, 4)])
def test_a_step_that_mixes_rows_is_rejected(name: str, dims: tuple[int, int]) -> None:
    assert find_rows(block([BY_ITSELF["sine"], MIXING[name]], *dims)) is None


@pytest.mark.parametrize("dims", [(2, 4, 3), (4,), (1, 2, 4, 3)])
def test_several_sequences_or_heads_have_no_rows(dims: tuple[int, ...]) -> None:
    model, (x,) = Model.build([("x", tensor("f64", dims))])
    model.set_outputs([("y", GraphBuilder(model).op(elementwise.Sin, x))])
    assert find_rows(model) is None


def test_a_value_used_as_rows_and_as_a_matrix_is_rejected() -> None:
    model, (x,) = Model.build([("x", tensor("f64", (4, 4)))])
    g = GraphBuilder(model)
    model.set_outputs([("y", g.matmul(g.op(elementwise.Sin, x), x, False))])
    assert find_rows(model) is None


def test_an_output_common_to_all_rows_is_rejected() -> None:
    model, (x,) = Model.build([("x", tensor("f64", (1, 4, 3)))])
    g = GraphBuilder(model)
    model.set_outputs([("y", g.op(elementwise.Sin, x)), ("z", g.constant(numbers(1, 4, 3)))])
    assert find_rows(model) is None


@given(st.lists(st.sampled_from([*BY_ITSELF, *MIXING]), min_size=2, max_size=7), st.data())
def test_row_parts_grow_around_ops_and_can_always_be_cut_out(
    names: list[str], data: st.DataObject
) -> None:
    model = block([(BY_ITSELF | MIXING)[name] for name in names], 4, 3)
    moving = [op for op in model.body.ops if op is not model.terminator and op.operands]
    seeds = data.draw(st.lists(st.sampled_from(moving), unique=True))
    groups = row_parts(model, "rows", seeds)
    assert all(any(op in group.ops for group in groups) for op in seeds)
    parts = cut_parts(model, groups)
    known = {port.name: numbers(*shape_of(port.value)) for port in model.inputs}
    whole = Interpreter(model).run(known)
    for part in parts:
        known |= Interpreter(part.model).run({p.name: known[p.name] for p in part.model.inputs})
    for name, value in whole.items():
        assert np.array_equal(known[name], value, equal_nan=True)


def test_a_row_part_ends_where_rows_mix() -> None:
    """The norm's part excludes attention, and all ops that are not connected to the norm."""
    names = ["product", "attention", "product", "norm", "gate", "attention", "residual"]
    model = block([(BY_ITSELF | MIXING)[name] for name in names], 4, 3)
    norms = [op for op in model.body.ops if isinstance(op, attention.RMS)]
    (group,) = row_parts(model, "rows", norms)
    kinds = sorted(op.name for op in group.ops)
    assert kinds == ["ov.MatMul", "ov.Multiply", "ov.RMS", "ov.Sigmoid"]
    (part,) = (part for part in cut_parts(model, [group]) if part.tag == "rows")
    assert all(row_count(port.value) == 4 for port in part.model.inputs)
    assert all(port.name.startswith(LINK_PREFIX) for port in part.model.outputs)


def test_ops_of_other_parts_are_in_no_row_part() -> None:
    model = block([BY_ITSELF[name] for name in ("product", "norm", "product")], 4, 3)
    ops = list(model.body.ops)
    (norm,) = (op for op in ops if isinstance(op, attention.RMS))
    products = [op for op in ops if isinstance(op, matmul.MatMul)]
    assert [group.ops for group in row_parts(model, "rows", [norm], products)] == [{norm}]
