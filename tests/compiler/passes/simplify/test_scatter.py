"""Assignments to slices, which exporters write flat, compute the same after simplification."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import StringAttr

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.scatter import ScatterNDUpdate
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from compiler_layer.passes.simplify import Simplify
from compiler_layer.reference.interpreter import Interpreter


@given(st.data())
def test_an_assignment_to_a_slice_becomes_a_concatenation_of_slices(data: st.DataObject) -> None:
    dims = tuple(data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    axis = data.draw(st.integers(0, len(dims) - 1))
    start, step = data.draw(st.integers(0, dims[axis] - 1)), data.draw(st.integers(1, 3))
    place = (*[slice(None)] * axis, slice(start, None, step))
    x = np.arange(np.prod(dims), dtype=np.float32).reshape(dims)
    indices = np.arange(x.size).reshape(dims)[place].reshape(-1, 1)
    updates = -1 - np.arange(len(indices), dtype=np.float32)

    model, (given_x, given_u) = Model.build(
        [("x", tensor("f32", dims)), ("u", tensor("f32", updates.shape))]
    )
    g = GraphBuilder(model)
    how = StringAttr("none")
    flat = g.op(
        ScatterNDUpdate, g.reshape(given_x, -1), g.constant(indices), given_u, reduction=how
    )
    model.set_outputs([("y", flat)])
    Simplify().apply(Context(), model.module)
    assert not any(isinstance(op, ScatterNDUpdate) for op in model.body.ops)

    expected = x.copy()
    expected[place] = updates.reshape(expected[place].shape)
    found = Interpreter(model).run({"x": x, "u": updates})["y"]
    assert np.array_equal(found, expected.reshape(-1))
