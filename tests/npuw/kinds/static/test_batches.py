"""Batches of static models that run item by item: results, and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.npuw.kinds.static.batches import (
    COMPILER,
    EXACT,
    OUT,
    PLUGIN,
    WIDTH,
    assert_same,
    doubled,
    items,
    of_item,
    outcome,
)

from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.reference.interpreter import Interpreter
from npuw_layer import BatchedCompiledModel, Core, RemoteContext, StaticCompiledModel
from npuw_layer.errors import InferenceCancelled, RemoteError, TensorError


@pytest.fixture(scope="module")
def double(write) -> BatchedCompiledModel:
    compiled = Core().compile_model(write(doubled(-1)), "NPU", EXACT)
    assert isinstance(compiled, BatchedCompiledModel)
    return compiled


# Results of an inference.


def test_an_open_batch_takes_any_number_of_items(open_batch, opened, check_alike) -> None:
    request, interpreter = opened.create_infer_request(), Interpreter(read_ir(open_batch))
    for count in (1, 3, 5, 2):
        inputs = items(count)
        found = request.infer(inputs)
        assert found["scores"].shape == (count, 3, OUT)
        check_alike(found, interpreter.run(inputs))


@given(count=st.integers(1, 6), seed=st.integers(0, 99))
def test_a_batch_equals_its_items_one_by_one(opened, count: int, seed: int) -> None:
    inputs = items(count, seed)
    alone = [outcome(opened, of_item(inputs, number)) for number in range(count)]
    joined = {name: np.concatenate([one[name] for one in alone]) for name in alone[0]}
    assert_same(outcome(opened, inputs), joined)


def test_a_fixed_batch_is_one_program_unless_plugin_is_set(fixed_batch, check_alike) -> None:
    core = Core()
    auto, compiled, by_items = (
        core.compile_model(fixed_batch, "NPU", EXACT | mode) for mode in ({}, COMPILER, PLUGIN)
    )
    assert isinstance(auto, StaticCompiledModel)
    assert isinstance(compiled, StaticCompiledModel)
    assert isinstance(by_items, BatchedCompiledModel)
    assert by_items.input("gain").shape == compiled.input("gain").shape == (3, 3, WIDTH)
    check_alike(outcome(by_items, items(3)), outcome(compiled, items(3)))
    with pytest.raises(TensorError, match=r"input 'ids' is i64 \[3, 3\], not i64 \[2, 3\]"):
        outcome(by_items, items(2))


def test_a_batch_of_one_is_one_program_in_any_mode(write) -> None:
    compiled = Core().compile_model(write(doubled(1)), "NPU", EXACT | PLUGIN)
    assert isinstance(compiled, StaticCompiledModel)


def test_ports_show_that_the_batch_is_open(opened) -> None:
    assert [port.partial_shape for port in opened.inputs] == [(-1, 3), (-1, 3, WIDTH)]
    assert opened.output("scores").partial_shape == (-1, 3, OUT)
    with pytest.raises(TensorError, match="'ids' has an open batch; see its partial_shape"):
        opened.input("ids").get_shape()


def test_requests_share_no_state(opened) -> None:
    one, two = opened.create_infer_request(), opened.create_infer_request()
    expected = [outcome(opened, items(count)) for count in (4, 2)]
    one.start_async(items(4))
    two.start_async(items(2))
    for request, values in ((two, expected[1]), (one, expected[0])):
        request.wait()
        assert_same(dict(request.results.items()), values)


def test_cancelling_an_inference_cancels_its_waiting_items(opened) -> None:
    request = opened.create_infer_request()
    request.start_async(items(20_000))
    request.cancel()
    with pytest.raises(InferenceCancelled):
        request.wait()
    assert request.transfers.inferences < 20_000
    assert_same(request.infer(items(2)), outcome(opened, items(2)))


# Tensors set by the caller.


def test_an_input_is_set_by_one_tensor_per_item(opened) -> None:
    request, inputs = opened.create_infer_request(), items(3)
    request.set_tensor("ids", inputs["ids"])
    request.set_tensors("gain", list(inputs["gain"][:, None]))
    assert_same(request.infer(), outcome(opened, inputs))
    request.set_input_tensors(1, [np.ones((1, 3, WIDTH), np.float32)] * 3)
    ones = {**inputs, "gain": np.ones((3, 3, WIDTH), np.float32)}
    assert_same(request.infer(), outcome(opened, ones))
    assert_same(request.infer(inputs), outcome(opened, inputs))  # inputs of infer replace them
    assert_same(request.infer(), outcome(opened, inputs))  # and stay set


def test_the_only_input_needs_no_index(double) -> None:
    request = double.create_infer_request()
    rows = np.arange(8, dtype=np.float32).reshape(2, 1, 4)
    request.set_input_tensors(list(rows))
    assert np.array_equal(request.infer()["y"], 2 * rows[:, 0])


def test_remote_tensors_are_read_and_written(double) -> None:
    context = double.get_context()
    assert isinstance(context, RemoteContext)
    x, y = (context.create_tensor("f32", (3, 4)) for _ in range(2))
    row = context.create_tensor("f32", (1, 4))
    x.data[...], row.data[...] = np.arange(12).reshape(3, 4), 7
    request = double.create_infer_request()
    request.set_tensor("x", x)
    request.set_tensor("y", y)
    assert "y" not in request.infer()  # it is in the caller's tensor
    assert np.array_equal(y.data, 2 * x.data)
    assert request.get_tensor("y") is y
    request.set_tensors("x", [row, np.zeros((1, 4), np.float32), row])
    request.infer()
    assert y.data[:, 0].tolist() == [14, 0, 14]


def test_an_output_is_written_to_the_callers_array(double) -> None:
    request, y = double.create_infer_request(), np.zeros((2, 4), np.float32)
    request.set_output_tensor(y)
    x = np.ones((2, 4), np.float32)
    request.infer(x)
    assert np.array_equal(y, 2 * x)
    with pytest.raises(TensorError, match=r"output 'y' is \[3, 4\], but its tensor is \[2, 4\]"):
        request.infer(np.ones((3, 4), np.float32))


def test_the_error_for_a_tensor_that_does_not_fit_names_the_port(opened) -> None:
    request, good = opened.create_infer_request(), items(2)
    wrong: list[tuple[dict[Any, Any], str]] = [
        (of_item(good, 0) | {"ids": good["ids"]}, "'ids' has 2, 'gain' has 1"),
        ({"ids": good["ids"][:0]}, r"input 'ids' is i64 \[\?, 3\], not i64 \[0, 3\]"),
        ({"ids": good["ids"][:, :2]}, r"input 'ids' is i64 \[\?, 3\], not i64 \[2, 2\]"),
        ({"ids": np.array(1)}, r"input 'ids' is i64 \[\?, 3\], not i64 \[\]"),
        ({"gain": good["gain"].astype(np.float64)}, "input 'gain' is f32 .*, not float64"),
        ({"mask": good["ids"]}, "no input 'mask'; the model has 0: 'ids', 1: 'gain'"),
    ]
    with pytest.raises(TensorError, match="input 'ids' is not set"):
        request.infer()
    for inputs, message in wrong:
        with pytest.raises(TensorError, match=message):
            request.infer(inputs)
    with pytest.raises(TensorError, match="input 'gain' takes a tensor for each item, not 0"):
        request.set_tensors("gain", [])
    with pytest.raises(TensorError, match=r"input 'gain' is f32 \[1, 3, 16\], not f32 \[2, 3, 16"):
        request.set_tensors("gain", [good["gain"]])
    assert_same(request.infer(good), outcome(opened, good))  # the request still works


def test_tensors_made_for_the_other_direction_are_rejected(double) -> None:
    request, context = double.create_infer_request(), double.get_context()
    inward, outward = (
        context.create_tensor("f32", (1, 4), {"MEM_TYPE": "L0_INTERNAL_BUF", "TENSOR_TYPE": side})
        for side in ("INPUT", "OUTPUT")
    )
    for ask in (lambda: request.set_tensor("x", outward), lambda: request.infer(outward)):
        with pytest.raises(RemoteError, match=r"'x' is an input; .* TENSOR_TYPE OUTPUT"):
            ask()
    with pytest.raises(RemoteError, match=r"'x' is an input; .* TENSOR_TYPE OUTPUT"):
        request.set_tensors("x", [outward])
    with pytest.raises(RemoteError, match=r"'y' is an output; .* TENSOR_TYPE INPUT"):
        request.set_tensor("y", inward)
