"""Static models on the NPU itself: routing, ports, results, errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.elements import NUMPY
from compiler_layer.model import Model
from npuw_layer import CompiledModel, Core, StaticCompiledModel
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.errors import ModelError, OptionError, TensorError


def doubled(element: str = "f32", shape: tuple[int, ...] = (2, 3)) -> Model:
    model, (x,) = Model.build([("x", tensor(element, shape))])
    g = GraphBuilder(model)
    y = g.times(x if element == "f32" else g.convert(x, "f32"), 2)
    model.set_outputs([("y", y)])
    return model


def test_ports_have_names_types_and_shapes(classify) -> None:
    inputs, outputs = classify.compiled.inputs, classify.compiled.outputs
    described = [(port.any_name, port.element_type, port.shape) for port in (*inputs, *outputs)]
    assert described == [
        ("ids", "i64", (4,)),
        ("gain", "f32", (4, 16)),
        ("scores", "f32", (4, 8)),
        ("codes", "i8", (4, 16)),
    ]
    assert classify.compiled.input("gain") is not classify.compiled.input(0)
    assert classify.compiled.output(1).get_any_name() == "codes"
    with pytest.raises(TensorError, match="the model has 2 inputs; select one"):
        classify.compiled.input()
    with pytest.raises(TensorError, match="no output 'logits'; the model has 0: 'scores'"):
        classify.compiled.output("logits")


def test_results_equal_the_interpreters(classify, check_alike) -> None:
    request, interpreter = classify.compiled.create_infer_request(), classify.interpreter()
    for seed in range(3):
        inputs = classify.inputs(seed)
        check_alike(request.infer(inputs), interpreter.run(inputs))


@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_narrow_precisions_are_close(classify, compile_static, graphs, precision: str) -> None:
    narrow = compile_static(graphs["classifier"](), INFERENCE_PRECISION_HINT=precision)
    inputs = classify.inputs(1)
    found = narrow.compiled.create_infer_request().infer(inputs)["scores"]
    expected = classify.interpreter().run(inputs)["scores"]
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert 0 < error < 2e-2


def test_inputs_are_identified_by_name_number_or_port(classify, check_alike) -> None:
    request, inputs = classify.compiled.create_infer_request(), classify.inputs(5)
    expected = request.infer(inputs)
    ids, gain = classify.compiled.inputs
    for keys in ((0, 1), (ids, gain), ("ids", 1)):
        values = dict(zip(keys, inputs.values(), strict=True))
        check_alike(classify.compiled.create_infer_request().infer(values), expected)


def test_results_stay_unchanged_by_later_inferences(classify) -> None:
    request = classify.compiled.create_infer_request()
    first = request.infer(classify.inputs(1))["scores"]
    kept = first.copy()
    shared = request.infer(classify.inputs(1), share_outputs=True)["scores"]
    request.infer(classify.inputs(2))
    assert np.array_equal(first, kept)
    assert not np.array_equal(shared, kept)


def test_the_only_input_needs_no_name(compile_static) -> None:
    request = compile_static(doubled()).compiled.create_infer_request()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(request.infer(x)["y"], 2 * x)
    request.set_input_tensor(x + 1)
    request.infer()
    assert np.array_equal(request.get_output_tensor().data, 2 * x + 2)


def test_an_output_may_be_an_unchanged_input(compile_static) -> None:
    model, (x,) = Model.build([("x", tensor("f32", (2, 3)))])
    model.set_outputs([("x", x), ("y", GraphBuilder(model).times(x, 3))])
    request = compile_static(model).compiled.create_infer_request()
    x = np.ones((2, 3), np.float32)
    found = request.infer({"x": x})
    assert {name: float(value.sum()) for name, value in found.items()} == {
        "x/sink_port_0": 6,
        "y": 18,
    }


@pytest.mark.parametrize("element", ["f16", "i64", "i32", "i8", "u8", "boolean"])
def test_inputs_have_the_types_of_the_device(compile_static, element: str) -> None:
    static = compile_static(doubled(element))
    x = np.array([[0, 1, 1], [1, 0, 1]]).astype(NUMPY[element])
    assert np.array_equal(static.compiled.create_infer_request().infer(x)["y"], 2.0 * x)


@pytest.mark.parametrize("element", ["i16", "u32", "f64"])
def test_the_error_for_an_unsupported_type_names_the_port(compile_static, element: str) -> None:
    with pytest.raises(ModelError, match=f"'x' is {element}; the NPU's inputs and outputs are f32"):
        compile_static(doubled(element))


def test_the_error_for_a_wrong_value_names_the_port(classify) -> None:
    request = classify.compiled.create_infer_request()
    good = classify.inputs(0)
    wrong = [
        ({"gain": good["gain"].astype(np.float64)}, r"input 'gain' is f32 \[4, 16\], not float64"),
        ({"gain": good["gain"][:2]}, r"input 'gain' is f32 \[4, 16\], not f32 \[2, 16\]"),
        ({"mask": good["gain"]}, "no input 'mask'; the model has 0: 'ids', 1: 'gain'"),
        ({7: good["gain"]}, "no input 7"),
        ({"gain": [1, 2]}, "is not a tensor; pass a Tensor, a RemoteTensor or an array"),
    ]
    for inputs, message in wrong:
        with pytest.raises(TensorError, match=message):
            request.infer(inputs)
    with pytest.raises(TensorError, match="the model has 2 inputs; select one"):
        request.set_input_tensor(good["gain"])
    request.infer(good)  # the request still works


# Routing of models.


def test_a_static_model_goes_to_the_npu_itself(classify) -> None:
    assert isinstance(classify.compiled, StaticCompiledModel)
    assert classify.compiled.get_property("NPU_USE_NPUW") is False
    assert classify.compiled.get_property("NPUW_LLM") is False


def test_a_dynamic_language_model_goes_to_npuw(llama_8m_ir: Path) -> None:
    options = {"NPUW_LLM_MAX_PROMPT_LEN": 64, "NPUW_LLM_MIN_RESPONSE_LEN": 64}
    compiled = Core().compile_model(llama_8m_ir, "NPU", options)
    assert isinstance(compiled, CompiledModel)
    assert compiled.get_property("NPU_USE_NPUW") is True
    assert compiled.get_property("NPUW_LLM") is True


@pytest.mark.parametrize("folder", [True, False], ids=["folder", "IR"])
def test_a_dynamic_model_is_rejected_by_the_npu_itself(
    tiny: Path, llama_8m_ir: Path, folder: bool
) -> None:
    with pytest.raises(ModelError, match=r"dynamic shapes: 'input_ids' \[\?,\?\].*NPUW_LLM to YES"):
        Core().compile_model(tiny if folder else llama_8m_ir, "NPU", {"NPU_USE_NPUW": "NO"})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"NPU_USE_NPUW": "NO", "NPUW_LLM": "YES"}, "NPUW_LLM = YES needs NPU_USE_NPUW = YES"),
        ({"NPUW_DEVICES": "CPU"}, "NPUW_DEVICES applies only to NPUW; .* set NPU_USE_NPUW = YES"),
        ({"NPUW_ACC_CHECK": "YES"}, "NPUW_ACC_CHECK applies only to NPUW"),
        ({"NPUW_WEIGHTS_BANK": "a"}, "NPUW_WEIGHTS_BANK applies only to NPUW"),
        ({"NPUW_ONLINE_PIPELINE": "REP"}, "NPUW_ONLINE_PIPELINE applies only to NPUW"),
        ({"NPUW_ONLINE_ISOLATE": "ATTN"}, "NPUW_ONLINE_ISOLATE applies only to NPUW"),
        ({"NPUW_WEIGHTS_OFFLOAD": "ASYNC"}, "NPUW_WEIGHTS_OFFLOAD applies only to language models"),
    ],
)
def test_contradicting_options_are_rejected(classify, config: dict, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Core().compile_model(classify.path, "NPU", config)


def test_properties_are_read_like_those_of_a_language_model(classify) -> None:
    supported = classify.compiled.get_property("SUPPORTED_PROPERTIES")
    for name in supported:
        classify.compiled.get_property(name)
    assert {"LOADED_FROM_CACHE", "EXECUTION_DEVICES", "NPU_TILES"} <= supported.keys()
    assert classify.compiled.get_property("EXECUTION_DEVICES") == ["NPU"]
    with pytest.raises(OptionError, match="did you mean NPU_TILES"):
        classify.compiled.get_property("NPU_TILE")
    classify.compiled.get_property("NPUW_LLM_PREFILL_CONFIG")["NPU_TILES"] = 1
    assert classify.compiled.get_property("NPUW_LLM_PREFILL_CONFIG") == {}, "it was a copy"


def test_npuw_with_splitting_rejects_a_static_model(classify) -> None:
    with pytest.raises(ModelError, match="not a stateful language model"):
        Core().compile_model(classify.path, "NPU", {"NPUW_LLM": "YES"})


def test_a_static_model_requires_the_npu(classify) -> None:
    with pytest.raises(OptionError, match=r"^InterpreterDevice: static .* ImportsMemory"):
        Core(device=InterpreterDevice()).compile_model(classify.path, "NPU")


def test_a_broken_file_is_reported_by_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    for content in (b"", b"<net", b"<!DOCTYPE net [<!ENTITY a 'b'>]><net/>", b"\xff\xfe\x00"):
        path.write_bytes(content)
        with pytest.raises(ModelError, match=r"model\.xml"):
            Core().compile_model(path, "NPU")


def test_all_requests_share_one_copy_of_the_weights(compile_static) -> None:
    draw = np.random.default_rng(4)
    model, (x,) = Model.build([("x", tensor("f32", (1, 512)))])
    g = GraphBuilder(model)
    weights = draw.standard_normal((512, 512)).astype(np.float32)
    model.set_outputs([("y", g.matmul(x, g.constant(weights), False))])
    compiled = compile_static(model).compiled
    space = compiled.get_context().get_params()["L0_CONTEXT"].space
    x = draw.standard_normal((1, 512)).astype(np.float32)
    requests, used = [], []
    for _ in range(3):
        requests.append(compiled.create_infer_request())
        np.testing.assert_allclose(requests[-1].infer(x)["y"], x @ weights, rtol=1e-4, atol=1e-4)
        used.append(space.allocated_bytes)
    assert used[0] > weights.nbytes
    assert used[2] - used[0] < weights.nbytes / 4


@pytest.mark.parametrize("encoding", ["utf-7", "nonsense"])
def test_an_ir_of_an_unsupported_encoding_is_rejected(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "openvino_model.xml"
    path.write_text(f'<?xml version="1.0" encoding="{encoding}"?><net/>')
    with pytest.raises(ModelError, match=r"openvino_model\.xml: is not an OpenVINO IR"):
        Core().compile_model(path)
