"""Static models compared to the real OpenVINO on the same IR: results, state, types and errors."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from xdsl.dialects.builtin import StringAttr

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import activation, elementwise, reduce
from compiler_layer.dialects.ov.op import int_attr
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import Core, StaticCompiledModel

pytestmark = pytest.mark.oracle

EXACT = {"INFERENCE_PRECISION_HINT": "f32"}


def weights(g: GraphBuilder, *shape: int, seed: int = 0) -> Any:
    draw = np.random.default_rng((seed, *shape))
    return g.constant((draw.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))


def perceptron() -> Model:
    """Build two layers with an activation, a softmax, and the hidden layer as a second output."""
    model, (x,) = Model.build([("x", tensor("f32", (32, 256)))])
    g = GraphBuilder(model)
    hidden = g.op(
        activation.Gelu,
        g.matmul(x, weights(g, 256, 512), False),
        name="hidden",
        approximation_mode=StringAttr("ERF"),
    )
    scores = g.matmul(hidden, weights(g, 512, 100), False)
    softmax = g.op(reduce.Softmax, scores, name="probabilities", axis=int_attr(1))
    model.set_outputs([("probabilities", softmax), ("hidden", hidden)])
    return model


def attention() -> Model:
    """Build an attention with embeddings by ids, concatenated heads, and a boolean mask."""
    shapes = [("ids", tensor("i64", (2, 24))), ("mask", tensor("boolean", (2, 1, 1, 24)))]
    model, (ids, mask) = Model.build(shapes)
    g = GraphBuilder(model)
    embedded = g.gather(weights(g, 50, 64), ids, 0, "embedded")
    products = [g.matmul(embedded, weights(g, 64, 64, seed=n), False) for n in range(3)]
    heads = [g.transpose(g.reshape(one, 2, 24, 4, 16), 0, 2, 1, 3) for one in products]
    scores = g.times(g.matmul(heads[0], heads[1], True), 0.25)
    least = g.number(-1e9, scores)
    masked = g.op(elementwise.Select, mask, scores, least)
    found = g.matmul(g.op(reduce.Softmax, masked, axis=int_attr(3)), heads[2], False, "attention")
    model.set_outputs([("attention", found)])
    return model


def gated() -> Model:
    """Build a recurrent cell with two variables; one is read after the other is written."""
    model, (x,) = Model.build([("x", tensor("f32", (3, 64)))])
    g = GraphBuilder(model)
    kind = tensor("f32", (3, 64))
    ids = {name: StringAttr(name) for name in ("cell", "hidden")}
    old = {
        name: g.add(
            ReadValue(
                operands=[[g.constant(np.full((3, 64), start, np.float32))]],
                properties={"variable_id": ids[name]},
                result_types=[kind],
            )
        ).output
        for name, start in (("cell", 0.5), ("hidden", 0.0))
    }
    mixed = g.op(
        elementwise.Add,
        g.matmul(x, weights(g, 64, 64), False),
        g.matmul(old["hidden"], weights(g, 64, 64, seed=1), False),
    )
    gate = g.op(activation.Sigmoid, mixed)
    cell = g.op(elementwise.Add, g.op(elementwise.Multiply, gate, old["cell"]), x, name="cell_new")
    hidden = g.op(elementwise.Multiply, g.op(activation.Tanh, cell), gate, name="hidden_new")
    g.add(Assign.make([cell], variable_id=ids["cell"]))
    g.add(Assign.make([hidden], variable_id=ids["hidden"]))
    model.set_outputs([("y", g.matmul(hidden, weights(g, 64, 10), False, "y"))])
    return model


GRAPHS: dict[str, Callable[[], Model]] = {
    "perceptron": perceptron,
    "attention": attention,
    "gated": gated,
}


WAYS: dict[str, dict[str, str]] = {
    "as it is": {},
    "in parts": {"NPU_USE_NPUW": "YES", "NPUW_ONLINE_ISOLATE": "Op:MatMul/products"},
}


@pytest.fixture(
    scope="module", params=[(name, way) for name in sorted(GRAPHS) for way in WAYS], ids=" ".join
)
def both(request, tmp_path_factory) -> tuple[Any, StaticCompiledModel]:
    """A model compiled by OpenVINO for its CPU, and by this stack for the NPU."""
    name, way = request.param
    path: Path = tmp_path_factory.mktemp(name) / "model.xml"
    write_ir(GRAPHS[name](), path)
    compiled = Core().compile_model(path, "NPU", EXACT | WAYS[way])
    assert isinstance(compiled, StaticCompiledModel)
    return ov.Core().compile_model(path, "CPU", EXACT), compiled


def inputs_of(compiled: StaticCompiledModel, seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    make = {
        "f32": lambda shape: draw.standard_normal(shape).astype(np.float32),
        "i64": lambda shape: draw.integers(0, 50, shape),
        "boolean": lambda shape: draw.random(shape) < 0.7,
    }
    return {port.any_name: make[port.element_type](port.shape) for port in compiled.inputs}


def assert_alike(theirs: Any, ours: Any, names: list[str]) -> None:
    for name in names:
        expected = theirs.get_tensor(name).data
        error = np.abs(ours.get_tensor(name).data - expected).max()
        assert error <= 1e-5 * max(1.0, float(np.abs(expected).max())), f"{name}: {error:.1e}"


def test_ports_equal_openvinos(both) -> None:
    theirs, ours = both
    for real, port in zip(
        (*theirs.inputs, *theirs.outputs), (*ours.inputs, *ours.outputs), strict=True
    ):
        assert port.any_name in real.names
        assert port.element_type == real.element_type.get_type_name()
        assert list(port.shape) == list(real.shape)


def test_results_equal_openvinos_in_every_form_of_a_call(both) -> None:
    theirs, ours = (compiled.create_infer_request() for compiled in both)
    names = [port.any_name for port in both[1].outputs]
    for turn in range(6):
        inputs = inputs_of(both[1], turn)
        if turn % 3 == 0:
            theirs.infer(inputs)
            ours.infer(inputs)
        elif turn % 3 == 1:
            for request in (theirs, ours):
                request.start_async(inputs)
                request.wait()
        else:
            for name, values in inputs.items():
                theirs.set_tensor(name, ov.Tensor(values))
                ours.set_tensor(name, values)
            theirs.infer()
            ours.infer()
        assert_alike(theirs, ours, names)


def test_results_in_remote_tensors_equal_openvinos(both) -> None:
    theirs, ours = (compiled.create_infer_request() for compiled in both)
    context = both[1].get_context()
    for port in (*both[1].inputs, *both[1].outputs):
        ours.set_tensor(port, context.create_tensor(port.element_type, port.shape))
    for turn in range(3):
        inputs = inputs_of(both[1], turn)
        theirs.infer(inputs)
        for name, values in inputs.items():
            ours.get_tensor(name).copy_from(values)
        ours.infer()
        assert_alike(theirs, ours, [port.any_name for port in both[1].outputs])
    assert ours.transfers.host_to_device == ours.transfers.device_to_host == 0


def test_states_equal_openvinos_and_can_be_transferred(both) -> None:
    """From OpenVINO to this stack, too: a conversation begun on the CPU continues on the NPU."""
    theirs, ours = (compiled.create_infer_request() for compiled in both)
    names = [port.any_name for port in both[1].outputs]
    for turn in range(3):
        inputs = inputs_of(both[1], turn)
        theirs.infer(inputs)
        ours.infer(inputs)
    real = {state.name: state for state in theirs.query_state()}
    assert set(real) == {state.name for state in ours.query_state()}
    for state in ours.query_state():
        np.testing.assert_allclose(state.state.data, real[state.name].state.data, atol=1e-5)
    ours = both[1].create_infer_request()
    for state in ours.query_state():
        state.state = np.array(real[state.name].state.data)
    for request in (theirs, ours):
        request.infer(inputs_of(both[1], 9))
    assert_alike(theirs, ours, names)
    for request in (theirs, ours):
        request.reset_state()
        request.infer(inputs_of(both[1], 10))
    assert_alike(theirs, ours, names)


def test_inputs_that_openvino_rejects_are_rejected(both) -> None:
    theirs, ours = (compiled.create_infer_request() for compiled in both)
    name = both[1].inputs[0].any_name
    shape = (*both[1].inputs[0].shape, 2)
    for wrong in (np.zeros(shape, np.float32), np.zeros(shape[:-1], np.float64)):
        with pytest.raises(RuntimeError):
            theirs.set_tensor(name, ov.Tensor(wrong))
        with pytest.raises(RuntimeError):
            ours.set_tensor(name, wrong)
    for request in (theirs, ours):
        with pytest.raises(RuntimeError):
            request.get_tensor("nothing")


@pytest.mark.parametrize("name", ["perceptron", "attention"])
def test_the_real_npuws_results_with_the_same_options_are_equal(name: str, tmp_path: Path) -> None:
    """NPUW links submodels in f16, and no pipeline is requested.

    Source: docs/reference/npuw.md#npuw-on-the-cpu.
    """
    path = tmp_path / "model.xml"
    write_ir(GRAPHS[name](), path)
    options = EXACT | {
        "NPU_USE_NPUW": "YES",
        "NPUW_DEVICES": "CPU",
        "NPUW_ONLINE_PIPELINE": "NONE",
    }
    theirs = ov.Core().compile_model(path, "NPU", options).create_infer_request()
    compiled = Core().compile_model(path, "NPU", options)
    assert isinstance(compiled, StaticCompiledModel)
    ours = compiled.create_infer_request()
    for turn in range(2):
        inputs = inputs_of(compiled, turn)
        theirs.infer(inputs)
        ours.infer(inputs)
        assert_alike(theirs, ours, [port.any_name for port in compiled.outputs])


@pytest.mark.parametrize("pipeline", ["INIT", "JUST", "REP"])
def test_a_plan_written_by_npuw_is_read(pipeline: str, tmp_path: Path) -> None:
    path, plan, again = (tmp_path / name for name in ("model.xml", "plan.xml", "again.xml"))
    write_ir(attention(), path)
    npuw = {"NPU_USE_NPUW": "YES", "NPUW_ONLINE_PIPELINE": pipeline}
    dumping = EXACT | npuw | {"NPUW_DEVICES": "CPU", "NPUW_ONLINE_DUMP_PLAN": str(plan)}
    ov.Core().compile_model(path, "NPU", dumping)
    options = {"NPU_USE_NPUW": "YES", "NPUW_PLAN": str(plan), "NPUW_ONLINE_DUMP_PLAN": str(again)}
    compiled = Core().compile_model(path, "NPU", EXACT | options)
    assert isinstance(compiled, StaticCompiledModel)
    written = [
        len(ET.parse(one).findall(".//group")) for one in (plan, tmp_path / "again.model.xml")
    ]
    assert written[0] == written[1] >= 10
    theirs = ov.Core().compile_model(path, "CPU", EXACT).create_infer_request()
    ours, inputs = compiled.create_infer_request(), inputs_of(compiled, 3)
    theirs.infer(inputs)
    ours.infer(inputs)
    assert_alike(theirs, ours, ["attention"])
