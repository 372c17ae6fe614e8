"""Variables of static models: in device memory, updated in place, and exposed as in OpenVINO."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import StringAttr

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from npuw_layer import Tensor
from npuw_layer.errors import ModelError, RemoteError, TensorError


def run_beside(static, request, turns: int, seed: int = 0) -> None:
    """Compare a request with the interpreter over several inferences."""
    interpreter = static.interpreter()
    for turn in range(turns):
        inputs = static.inputs(seed + turn)
        expected, found = interpreter.run(inputs), request.infer(inputs)
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, rtol=1e-4, atol=1e-4)


def test_a_variable_persists_from_one_inference_to_the_next(recur) -> None:
    run_beside(recur, recur.compiled.create_infer_request(), 4)


def test_a_reset_restores_the_initial_value(recur) -> None:
    request = recur.compiled.create_infer_request()
    run_beside(recur, request, 3)
    request.reset_state()
    run_beside(recur, request, 3, seed=7)
    (state,) = request.query_state()
    state.reset()
    run_beside(recur, request, 2)


def test_a_state_is_saved_and_continued_in_another_request(recur, check_alike) -> None:
    first, second = (recur.compiled.create_infer_request() for _ in range(2))
    first.infer(recur.inputs(1))
    (held,), (other,) = first.query_state(), second.query_state()
    saved = np.array(held.state.data)
    expected = first.infer(recur.inputs(2))
    other.state = Tensor(saved)
    check_alike(second.infer(recur.inputs(2)), expected)


def test_a_variable_is_read_and_written_in_one_buffer(recur) -> None:
    """The array that query_state returned before shows the next inference's value."""
    request = recur.compiled.create_infer_request()
    (state,) = request.query_state()
    assert state.name == "memory"
    before = state.state.data
    old = before.copy()
    y = request.infer(recur.inputs(1))["y"]
    np.testing.assert_allclose(np.tanh(before), y, rtol=1e-5, atol=1e-5)
    assert not np.array_equal(before, old)
    assert state.state.data.ctypes.data == before.ctypes.data
    assert request.transfers.of("variable memory").in_place == before.nbytes


def test_a_remote_tensor_replaces_the_buffer(recur) -> None:
    request = recur.compiled.create_infer_request()
    (state,) = request.query_state()
    mine = recur.compiled.get_context().create_tensor("f32", state.shape)
    mine.copy_from(state.state)
    state.state = mine
    run_beside(recur, request, 2)
    np.testing.assert_array_equal(state.state.data, mine.data)
    assert mine.data.any()


def test_values_that_do_not_fit_a_variable_are_rejected(recur) -> None:
    request = recur.compiled.create_infer_request()
    (state,) = request.query_state()
    context = recur.compiled.get_context()
    with pytest.raises(TensorError, match=r"'memory' is f32 \[4, 16\], not f32 \[4, 1\]"):
        state.state = np.zeros((4, 1), np.float32)
    with pytest.raises(TensorError, match="not float16"):
        state.state = np.zeros((4, 16), np.float16)
    internal = {"MEM_TYPE": "L0_INTERNAL_BUF", "TENSOR_TYPE": "INPUT"}
    with pytest.raises(RemoteError, match="TENSOR_TYPE is BINDED, not INPUT"):
        state.state = context.create_tensor("f32", (4, 16), internal)
    other = type(recur.core)().get_default_context("NPU").create_tensor("f32", (4, 16))
    with pytest.raises(RemoteError, match="of another context"):
        state.state = other
    run_beside(recur, request, 1)


@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_a_variable_is_kept_in_the_precision_of_the_device(
    compile_static, graphs, precision: str
) -> None:
    narrow = compile_static(graphs["recurrent"](), INFERENCE_PRECISION_HINT=precision)
    request, interpreter = narrow.compiled.create_infer_request(), narrow.interpreter()
    for turn in range(3):
        expected = interpreter.run(narrow.inputs(turn))["y"]
        found = request.infer(narrow.inputs(turn))["y"]
        assert np.abs(found - expected).max() < 3e-2
    (state,) = request.query_state()
    assert state.state.data.itemsize == 2


# Initial values.


def counting(start: Callable[[GraphBuilder, object], object]) -> Model:
    """Build a model that adds x to a variable with a given initial value."""
    kind = tensor("f32", (2, 3))
    model, (x,) = Model.build([("x", kind)])
    g = GraphBuilder(model)
    name = StringAttr("total")
    read = ReadValue(
        operands=[[start(g, x)]], properties={"variable_id": name}, result_types=[kind]
    )
    new = g.op(elementwise.Add, g.add(read).output, x)
    g.add(Assign.make([new], variable_id=name))
    model.set_outputs([("y", g.times(new, 1.5))])
    return model


def test_an_initial_value_may_be_computed_and_depend_on_shapes(compile_static) -> None:
    def start(g: GraphBuilder, x):
        rows = g.convert(g.dim(x, 0), "f32")  # 2, of the shape
        ones = g.constant(np.ones((2, 3), np.float32))
        return g.op(elementwise.Multiply, ones, rows)

    static = compile_static(counting(start))
    request = static.compiled.create_infer_request()
    found = request.infer(np.zeros((2, 3), np.float32))["y"]
    assert (found == 3).all()
    run_beside(static, static.compiled.create_infer_request(), 3)


def test_an_initial_value_that_depends_on_inputs_is_rejected(compile_static) -> None:
    with pytest.raises(ModelError, match="'total' has an initial value that depends on inputs"):
        compile_static(counting(lambda g, x: g.times(x, 2)))


# Updates in place, for any use of the old value.

N = 96
"""Rows and columns; few, but enough for several tiles."""

MIXTURES = {
    "added to": lambda g, old, other: g.op(elementwise.Add, old, other),
    "multiplied": lambda g, old, other: g.matmul(old, other, False),
    "multiplied by": lambda g, old, other: g.matmul(other, old, True),
    "transposed": lambda g, old, other: g.transpose(old, 1, 0),
    "turned": lambda g, old, other: g.concat(
        [g.slice(old, 0, N // 2), g.slice(old, 0, 0, N // 2)], 0
    ),
    "replaced": lambda g, old, other: other,
    "kept": lambda g, old, other: old,
}


def mixture(kinds: tuple[str, str], size: int) -> Model:
    """Build a model with two variables, each computed from its old value and the other's."""
    draw = np.random.default_rng(size)
    kind = tensor("f32", (size, size))
    model, (x,) = Model.build([("x", kind)])
    g = GraphBuilder(model)
    ids = [StringAttr(name) for name in ("a", "b")]
    reads = [
        g.add(
            ReadValue(
                operands=[[g.constant(draw.standard_normal((size, size)).astype(np.float32))]],
                properties={"variable_id": name},
                result_types=[kind],
            )
        ).output
        for name in ids
    ]
    news = [
        MIXTURES[kinds[0]](g, reads[0], reads[1]),
        MIXTURES[kinds[1]](g, reads[1], reads[0]),
    ]
    for name, new in zip(ids, news, strict=True):
        g.add(Assign.make([new], variable_id=name))
    model.set_outputs([("y", g.op(elementwise.Add, x, reads[0]))])
    return model


@settings(max_examples=20, deadline=None)
@given(kinds=st.tuples(*[st.sampled_from(sorted(MIXTURES))] * 2))
def test_old_values_are_read_before_they_are_overwritten(compile_static, kinds) -> None:
    static = compile_static(mixture(kinds, N))
    interpreter, request = static.interpreter(), static.compiled.create_infer_request()
    for turn in range(3):
        expected = interpreter.run(static.inputs(turn))["y"]
        found = request.infer(static.inputs(turn))["y"]
        scale = np.abs(expected).max()
        assert np.abs(found - expected).max() <= 1e-4 * scale


def test_a_large_variable_is_transposed_in_place(compile_static) -> None:
    """No tile holds the complete variable: one tile writes what another has yet to read."""
    static = compile_static(mixture(("transposed", "kept"), 1200))
    interpreter, request = static.interpreter(), static.compiled.create_infer_request()
    for turn in range(3):
        x = np.full((1200, 1200), turn, np.float32)
        np.testing.assert_array_equal(request.infer(x)["y"], interpreter.run({"x": x})["y"])
