"""Batches of static models: item by item where they are open, compiled where they are fixed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.npuw.static.native import RAW, described, payload

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import activation, elementwise
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import BatchedCompiledModel, Core, RemoteContext, StaticCompiledModel
from npuw_layer.errors import BlobError, ModelError, OptionError, RemoteError, TensorError
from npuw_layer.native_blob.container import read_blob

EXACT = {"INFERENCE_PRECISION_HINT": "f32"}
PLUGIN, COMPILER = ({"NPU_BATCH_MODE": mode} for mode in ("PLUGIN", "COMPILER"))
WIDTH, OUT = 16, 8

Arrays = Mapping[str, np.ndarray]
Write = Callable[[Model], Path]


def scorer(batch: int) -> Model:
    """Rows of a table, scaled and multiplied; two types of inputs, two of outputs."""
    draw = np.random.default_rng(7)
    shapes = [("ids", tensor("i64", (batch, 3))), ("gain", tensor("f32", (batch, 3, WIDTH)))]
    model, (ids, gain) = Model.build(shapes)
    g = GraphBuilder(model)
    table = g.constant(draw.standard_normal((32, WIDTH)).astype(np.float32))
    weights = g.constant(draw.standard_normal((WIDTH, OUT)).astype(np.float32))
    hidden = g.op(elementwise.Multiply, g.gather(table, ids, 0), gain, name="hidden")
    scores = g.matmul(g.op(activation.Relu, hidden), weights, False, name="scores")
    model.set_outputs([("scores", scores), ("codes", g.convert(hidden, "i8", "codes"))])
    return model


def doubled(batch: int) -> Model:
    model, (x,) = Model.build([("x", tensor("f32", (batch, 4)))])
    model.set_outputs([("y", GraphBuilder(model).times(x, 2))])
    return model


def items(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    draw = np.random.default_rng((seed, count))
    gain = draw.standard_normal((count, 3, WIDTH)).astype(np.float32)
    return {"ids": draw.integers(0, 32, (count, 3)), "gain": gain}


def of_item(inputs: Arrays, number: int) -> dict[str, np.ndarray]:
    return {name: values[number : number + 1] for name, values in inputs.items()}


def outcome(compiled: Any, inputs: Arrays) -> dict[str, np.ndarray]:
    return dict(compiled.create_infer_request().infer(inputs).items())


def assert_same(found: Arrays, expected: Arrays) -> None:
    assert {str(name) for name in found} == {str(name) for name in expected}
    for name, values in expected.items():
        assert np.array_equal(found[name], values), name


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Write:
    def as_ir(model: Model) -> Path:
        path = tmp_path_factory.mktemp("batches") / "model.xml"
        write_ir(model, path)
        return path

    return as_ir


@pytest.fixture(scope="module")
def path(write: Write) -> Path:
    """An IR whose batch is open."""
    return write(scorer(-1))


@pytest.fixture(scope="module")
def fixed(write: Write) -> Path:
    """The same for three items."""
    return write(scorer(3))


@pytest.fixture(scope="module")
def opened(path: Path) -> BatchedCompiledModel:
    compiled = Core().compile_model(path, "NPU", EXACT)
    assert isinstance(compiled, BatchedCompiledModel)
    return compiled


@pytest.fixture(scope="module")
def double(write: Write) -> BatchedCompiledModel:
    compiled = Core().compile_model(write(doubled(-1)), "NPU", EXACT)
    assert isinstance(compiled, BatchedCompiledModel)
    return compiled


# What an inference computes.


def test_an_open_batch_takes_any_number_of_items(path, opened, check_alike) -> None:
    request, interpreter = opened.create_infer_request(), Interpreter(read_ir(path))
    for count in (1, 3, 5, 2):
        inputs = items(count)
        found = request.infer(inputs)
        assert found["scores"].shape == (count, 3, OUT)
        check_alike(found, interpreter.run(inputs))


@given(count=st.integers(1, 6), seed=st.integers(0, 99))
def test_a_batch_is_what_its_items_are_one_by_one(opened, count: int, seed: int) -> None:
    inputs = items(count, seed)
    alone = [outcome(opened, of_item(inputs, number)) for number in range(count)]
    joined = {name: np.concatenate([one[name] for one in alone]) for name in alone[0]}
    assert_same(outcome(opened, inputs), joined)


def test_a_fixed_batch_is_one_program_unless_items_are_asked_for(fixed, check_alike) -> None:
    core = Core()
    auto, compiled, by_items = (
        core.compile_model(fixed, "NPU", EXACT | mode) for mode in ({}, COMPILER, PLUGIN)
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


def test_requests_share_nothing(opened) -> None:
    one, two = opened.create_infer_request(), opened.create_infer_request()
    expected = [outcome(opened, items(count)) for count in (4, 2)]
    one.start_async(items(4))
    two.start_async(items(2))
    for request, values in ((two, expected[1]), (one, expected[0])):
        request.wait()
        assert_same(dict(request.results.items()), values)


# Tensors that are set.


def test_a_tensor_for_each_item(opened) -> None:
    request, inputs = opened.create_infer_request(), items(3)
    request.set_tensor("ids", inputs["ids"])
    request.set_tensors("gain", list(inputs["gain"][:, None]))
    assert_same(request.infer(), outcome(opened, inputs))
    request.set_input_tensors(1, [np.ones((1, 3, WIDTH), np.float32)] * 3)
    ones = {**inputs, "gain": np.ones((3, 3, WIDTH), np.float32)}
    assert_same(request.infer(), outcome(opened, ones))
    assert_same(request.infer(inputs), outcome(opened, inputs))  # what is given replaces them
    assert_same(request.infer(), outcome(opened, inputs))  # and stays


def test_the_only_input_needs_no_number(double) -> None:
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
    assert "y" not in request.infer()  # it is where the caller wants it
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
    with pytest.raises(TensorError, match=r"output 'y' is \[3, 4\]; it was set to \[2, 4\]"):
        request.infer(np.ones((3, 4), np.float32))


def test_what_does_not_fit_is_refused_by_name(opened) -> None:
    request, good = opened.create_infer_request(), items(2)
    wrong: list[tuple[dict[Any, Any], str]] = [
        (of_item(good, 0) | {"ids": good["ids"]}, "'ids' has 2, 'gain' has 1"),
        ({"ids": good["ids"][:0]}, r"input 'ids' is i64 \[\?, 3\], not i64 \[0, 3\]"),
        ({"ids": good["ids"][:, :2]}, r"input 'ids' is i64 \[\?, 3\], not i64 \[2, 2\]"),
        ({"ids": np.array(1)}, r"input 'ids' is i64 \[\?, 3\], not i64 \[\]"),
        ({"gain": good["gain"].astype(np.float64)}, "input 'gain' is f32 .*, not float64"),
        ({"mask": good["ids"]}, "no input 'mask'; there are 0: 'ids', 1: 'gain'"),
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
    assert_same(request.infer(good), outcome(opened, good))  # it still works


def test_tensors_of_the_other_side_are_refused(double) -> None:
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


# Which models are run so.


def unequal() -> Model:
    shapes = [("a", tensor("f32", (3, 4))), ("b", tensor("f32", (1, 4)))]
    model, (a, b) = Model.build(shapes)
    model.set_outputs([("y", GraphBuilder(model).op(elementwise.Add, a, b))])
    return model


def test_plugin_refuses_what_items_cannot_be_told_apart_in(write, graphs) -> None:
    for graph, message in (
        (graphs["recurrent"](), "PLUGIN: the model has variables, which items would share"),
        (unequal(), "of input 'a' it is 3 and input 'b' it is 1"),
    ):
        with pytest.raises(OptionError, match=message):
            Core().compile_model(write(graph), "NPU", EXACT | PLUGIN)


def test_plugin_is_for_the_npu_itself(path) -> None:
    through = {"NPU_USE_NPUW": "YES", "NPUW_LLM": "NO"}
    with pytest.raises(
        OptionError, match="NPU_BATCH_MODE = PLUGIN is for static models on the NPU"
    ):
        Core().compile_model(path, "NPU", EXACT | PLUGIN | through)
    one = Core().compile_model(path, "NPU", EXACT | through)
    assert isinstance(one, StaticCompiledModel)
    assert one.input("ids").shape == (1, 3)


def test_the_compiler_takes_no_open_batch(path) -> None:
    with pytest.raises(OptionError, match=r"COMPILER: input 'ids' is \[\?,3\], and programs have"):
        Core().compile_model(path, "NPU", EXACT | COMPILER)
    with pytest.raises(OptionError, match="NPU_BATCH_MODE"):
        Core().compile_model(path, "NPU", EXACT | {"NPU_BATCH_MODE": "BOTH"})


def test_an_output_that_has_another_first_dimension_has_no_batch(write) -> None:
    model, (x,) = Model.build([("x", tensor("f32", (-1, 4)))])
    g = GraphBuilder(model)
    model.set_outputs([("y", g.reshape(x, -1, 2))])
    with pytest.raises(ModelError, match=r"output 'y' is \[2, 2\] for one item"):
        Core().compile_model(write(model), "NPU", EXACT)


# What is kept.


def test_a_second_start_reads_no_graph(path, opened, tmp_path) -> None:
    cached = EXACT | {"CACHE_DIR": str(tmp_path)}
    Core().compile_model(path, "NPU", cached)
    start = f"""
import sys
import numpy as np
from npuw_layer import BatchedCompiledModel, Core
compiled = Core().compile_model({str(path)!r}, "NPU", {cached!r})
assert isinstance(compiled, BatchedCompiledModel)
assert compiled.get_property("LOADED_FROM_CACHE")
inputs = np.zeros((2, 3), np.int64), np.ones((2, 3, {WIDTH}), np.float32)
print(compiled(inputs)["scores"].tobytes().hex())
assert "xdsl" not in sys.modules
"""
    argv = [sys.executable, "-c", start]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    inputs = {"ids": np.zeros((2, 3), np.int64), "gain": np.ones((2, 3, WIDTH), np.float32)}
    assert done.stdout.strip() == outcome(opened, inputs)["scores"].tobytes().hex()


def test_the_ways_to_take_a_batch_are_kept_apart(fixed, tmp_path) -> None:
    cached = EXACT | {"CACHE_DIR": str(tmp_path)}
    for found in (False, True):
        for mode in (COMPILER, PLUGIN):
            compiled = Core().compile_model(fixed, "NPU", cached | mode)
            assert compiled.get_property("LOADED_FROM_CACHE") == found
            assert isinstance(compiled, BatchedCompiledModel) == (mode is PLUGIN)
            assert outcome(compiled, items(3))["scores"].shape == (3, 3, OUT)


@pytest.mark.parametrize("batch", [-1, 3])
def test_a_blob_keeps_the_batch(write, batch: int) -> None:
    whole = EXACT | PLUGIN | {"CACHE_MODE": "OPTIMIZE_SPEED"}
    compiled = Core().compile_model(write(scorer(batch)), "NPU", whole)
    blob = compiled.export_model()
    metadata = read_blob(memoryview(blob)).metadata
    assert metadata is not None
    assert metadata.batch == batch
    expected = outcome(compiled, items(3))
    by_others = described(payload(blob), batch=batch)
    for content in (blob, by_others):
        again = Core().import_model(content, "NPU")
        assert isinstance(again, BatchedCompiledModel)
        assert again.input("ids").partial_shape == (batch, 3)
        assert_same(outcome(again, items(3)), expected)
    one = Core().import_model(payload(blob), "NPU", RAW)  # an ELF says nothing of a batch
    assert isinstance(one, StaticCompiledModel)
    assert one.input("ids").shape == (1, 3)


def test_a_blob_through_npuw_takes_its_batch_itself(fixed) -> None:
    compiled = Core().compile_model(fixed, "NPU", EXACT | {"NPU_USE_NPUW": "YES"})
    given = {"MODEL_PTR": str(fixed)}
    again = Core().import_model(compiled.export_model(), "NPU", given)
    assert isinstance(again, StaticCompiledModel)
    assert_same(outcome(again, items(3)), outcome(compiled, items(3)))


def test_a_blob_is_not_believed_to_have_a_batch(write, graphs) -> None:
    speed = EXACT | {"CACHE_MODE": "OPTIMIZE_SPEED"}
    three, stateful = (
        payload(Core().compile_model(write(graph), "NPU", speed).export_model())
        for graph in (doubled(3), graphs["recurrent"]())
    )
    for batch, said in ((3, "a batch of 3"), (-1, "any batch")):
        with pytest.raises(BlobError, match=f"each of {said}, and its program does not take one"):
            Core().import_model(described(three, batch=batch), "NPU")
    with pytest.raises(BlobError, match="variables"):
        Core().import_model(described(stateful, batch=4), "NPU")
