"""Static models through NPUW (NPU_USE_NPUW): equal results on all devices, whole or in parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import activation, elementwise
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from npuw_layer import Core, StaticCompiledModel
from npuw_layer.errors import ModelError, OptionError

THROUGH = {"NPU_USE_NPUW": "YES"}
DEVICES = ["NPU", "CPU", "NPU,CPU", "CPU,NPU", "OPENVINO_CPU", "OPENVINO_CPU,NPU"]


def layered(layers: int = 6) -> Model:
    """Build equal layers, each with its own weights."""
    draw = np.random.default_rng(3)
    model, (x,) = Model.build([("x", tensor("f32", (4, 16)))])
    g = GraphBuilder(model)
    for layer in range(layers):
        weights = g.constant(draw.standard_normal((16, 16)).astype(np.float32))
        y = g.matmul(x, weights, False, name=f"product_{layer}")
        y = g.op(activation.Relu, g.op(elementwise.Add, y, x), name=f"gate_{layer}")
        x = g.op(elementwise.Add, g.op(activation.Tanh, y), x)
    model.set_outputs([("y", x)])
    return model


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("graph", ["classifier", "recurrent"])
def test_any_device_equals_the_interpreter(
    compile_static, graphs, check_alike, graph: str, devices: str
) -> None:
    static = compile_static(graphs[graph](), **THROUGH, NPUW_DEVICES=devices)
    request, interpreter = static.compiled.create_infer_request(), static.interpreter()
    for seed in range(3):
        inputs = static.inputs(seed)
        check_alike(request.infer(inputs), interpreter.run(inputs))
    assert static.compiled.get_property("EXECUTION_DEVICES") == [devices.split(",")[0]]
    request.reset_state()
    check_alike(request.infer(static.inputs(0)), static.interpreter().run(static.inputs(0)))


def test_npuw_runs_a_static_model_without_splitting_it_as_an_llm(compile_static, graphs):
    static = compile_static(graphs["classifier"](), **THROUGH)
    assert isinstance(static.compiled, StaticCompiledModel)
    assert static.compiled.get_property("NPU_USE_NPUW") is True
    assert static.compiled.get_property("NPUW_LLM") is False


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"NPUW_ONLINE_ISOLATE": "Op:Relu/gates"}, {"", "gates"}),
        ({"NPUW_ONLINE_AVOID": "Op:Relu/NPU", "NPUW_DEVICES": "NPU,CPU"}, {"", "not NPU"}),
        ({"NPUW_ONLINE_PIPELINE": "REP", "NPUW_ONLINE_KEEP_BLOCK_SIZE": 5}, {"", "layer"}),
    ],
    ids=["isolated", "avoided", "layers"],
)
def test_parts_equal_the_complete_model(
    compile_static, check_alike, tmp_path: Path, options: dict, parts: set[str]
) -> None:
    plan = {"NPUW_ONLINE_DUMP_PLAN": str(tmp_path / "plan.xml")}
    static = compile_static(layered(), **THROUGH, **options, **plan)
    inputs = static.inputs(1)
    found = static.compiled.create_infer_request().infer(inputs)
    check_alike(found, static.interpreter().run(inputs))
    written = (tmp_path / "plan.model.xml").read_text()
    assert all(f'tag="{tag}"' in written for tag in parts - {""})


def test_the_report_shows_each_parts_device_and_accuracy(compile_static) -> None:
    apart = {"NPUW_ONLINE_AVOID": "Op:Relu/NPU", "NPUW_DEVICES": "NPU,CPU"}
    static = compile_static(layered(2), **THROUGH, **apart, NPUW_ACC_CHECK="YES")
    request = static.compiled.create_infer_request()
    request.infer(static.inputs(1))
    npu, avoided = request.execution_report()["device of model"].split(" | ")
    assert npu.startswith("part ×3: NPU; 3 runs checked, largest NRMSE ")
    assert avoided == "not NPU ×2: CPU", "the reference is not compared with itself"
    assert static.compiled.get_property("EXECUTION_DEVICES") == ["NPU", "CPU"]


def test_ports_keep_their_order_for_any_partition(compile_static, check_alike) -> None:
    """Unread inputs are listed, too, and an output of an early part keeps its number."""
    shape = (2, 3)
    model, (_, x) = Model.build([(name, tensor("f32", shape)) for name in ("spare", "x")])
    g = GraphBuilder(model)
    early = g.op(activation.Relu, x)
    model.set_outputs([("late", g.op(activation.Tanh, early)), ("early", early)])
    for cut in ({}, {"NPUW_ONLINE_ISOLATE": "Op:Tanh/last"}):
        static = compile_static(model.clone(), **THROUGH, **cut)
        assert [port.any_name for port in static.compiled.inputs] == ["spare", "x"]
        assert [port.any_name for port in static.compiled.outputs] == ["late", "early"]
        inputs = static.inputs(5)
        found = static.compiled.create_infer_request().infer(inputs)
        check_alike(found, static.interpreter().run(inputs))


def test_two_partitioned_requests_do_not_mix(compile_static, graphs, check_alike) -> None:
    static = compile_static(
        graphs["recurrent"](), **THROUGH, NPUW_ONLINE_ISOLATE="Op:Tanh/last,Op:MatMul/mix"
    )
    requests = [static.compiled.create_infer_request() for _ in range(2)]
    interpreters = [static.interpreter() for _ in range(2)]
    for seed in (1, 2, 3, 1, 2):
        inputs = static.inputs(seed)
        number = seed % 2
        check_alike(requests[number].infer(inputs), interpreters[number].run(inputs))


def test_a_model_is_pinned_by_its_name_or_number(compile_static, graphs) -> None:
    for pin in ("model:CPU", "0:CPU", "last:CPU"):
        options = {**THROUGH, "NPUW_DEVICES": "NPU,CPU", "NPUW_SUBMODEL_DEVICE": pin}
        compiled = compile_static(graphs["classifier"](), **options).compiled
        compiled.create_infer_request()
        assert compiled.get_property("EXECUTION_DEVICES") == ["CPU"]
    with pytest.raises(OptionError, match="no submodel 'prefill'; choose from 0 model"):
        compile_static(
            graphs["classifier"](),
            **{**THROUGH, "NPUW_DEVICES": "NPU,CPU", "NPUW_SUBMODEL_DEVICE": "prefill:CPU"},
        )


def test_inaccurate_parts_move_to_the_reference(compile_static, graphs, check_alike) -> None:
    options = {"NPUW_ACC_CHECK": "YES", "INFERENCE_PRECISION_HINT": "f16", "NPUW_ACC_THRESH": "0"}
    static = compile_static(graphs["classifier"](), **THROUGH, **options)
    request, inputs = static.compiled.create_infer_request(), static.inputs(4)
    request.infer(inputs)
    assert static.compiled.get_property("EXECUTION_DEVICES") == ["CPU"]
    found = request.infer(inputs)["scores"]
    expected = static.interpreter().run(inputs)["scores"]
    assert np.abs(found - expected).max() < 1e-2 * np.abs(expected).max()


@pytest.mark.parametrize("devices", ["NPU,CPU", "CPU"])
def test_remote_tensors_are_used_in_place(compile_static, check_alike, devices: str) -> None:
    core = Core()
    static = compile_static(layered(), core, **THROUGH, NPUW_DEVICES=devices)
    context = static.compiled.get_context()
    x, y = (context.create_tensor("f32", (4, 16)) for _ in range(2))
    inputs = static.inputs(2)
    x.copy_from(inputs["x"])
    request = static.compiled.create_infer_request()
    request.set_tensor("x", x)
    request.set_tensor("y", y)
    request.infer()
    assert request.transfers.of("x").host_to_device == request.transfers.of("y").device_to_host == 0
    check_alike({"y": y.data}, static.interpreter().run(inputs))


def test_a_second_start_compiles_nothing(compile_static, tmp_path: Path) -> None:
    options = {**THROUGH, "CACHE_DIR": str(tmp_path), "INFERENCE_PRECISION_HINT": "f32"}
    path = compile_static(layered(), **options).path
    for more, cached in (
        ({}, True),
        ({"NPUW_ONLINE_PIPELINE": "REP"}, False),
        ({"NPUW_ONLINE_PIPELINE": "REP"}, True),
        ({"NPUW_DEVICES": "NPU,CPU"}, False),
        ({"NPUW_DEVICES": "NPU,CPU"}, True),
    ):
        compiled = Core().compile_model(path, "NPU", options | more)
        assert compiled.get_property("LOADED_FROM_CACHE") is cached, more


def test_weights_are_shared_by_the_name_of_their_bank(compile_static, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    bank = {"NPUW_WEIGHTS_BANK": "one", "NPUW_WEIGHTS_BANK_ALLOC": "SHARED"}
    static = compile_static(layered(), **THROUGH, **bank)
    assert static.compiled.sharing() is not None
    assert compile_static(layered(), **THROUGH).compiled.sharing() is None


def test_a_dynamic_model_that_is_not_a_language_model_is_rejected(llama_8m_ir: Path) -> None:
    with pytest.raises(ModelError, match=r"dynamic shapes: 'input_ids'.*NPUW_LLM to YES"):
        Core().compile_model(llama_8m_ir, "NPU", {**THROUGH, "NPUW_LLM": "NO"})
