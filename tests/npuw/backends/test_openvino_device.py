"""The real OpenVINO's CPU plugin as a device; test_seams compares its results with others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest
from tests.covering import beside_by_turns
from tests.npuw.splitting import split

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.frontends.openvino_ir import read_ir
from compiler_layer.model import Model
from compiler_layer.weights import WEIGHT_PREFIX
from npuw_layer import Core
from npuw_layer.backends.interpreter import HostMemory, InterpreterDevice
from npuw_layer.backends.openvino import OpenVINODevice
from npuw_layer.errors import DeviceError, ModelError
from npuw_layer.testing.check_device import CONFIG, small_graph

EXPORTED = Path(__file__).resolve().parents[2] / "goldens" / "exported"
LENGTHS = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "YES",
}

KINDS = [
    *("llama_fp16", "llama_int8", "llama_int4_asym", "qwen2_bf16", "gemma2_fp16"),
    *("mixtral_int4", "bloom_fp16", "phi3_int4"),
]
"""Each format of weights, windows, soft caps, experts, distances instead of positions."""


@pytest.fixture
def exported(load_module: Callable[[Path], Any], tmp_path: Path) -> Callable[[str], Path]:
    """Restore an exported IR."""
    restore = load_module(EXPORTED / "restore.py").restore
    return lambda name: restore(EXPORTED, name, tmp_path / name)


def converse(device: Any, path: Path, **options: Any) -> np.ndarray:
    """Return the logits of a prompt and of some tokens after it."""
    compiled = Core(device=device).compile_model(path, "NPU", LENGTHS | options)
    request = compiled.create_infer_request()
    draw = np.random.default_rng(5)
    found: list[np.ndarray] = []
    past = 0
    for count in (23, 1, 1, 4, 1):
        logits = request.infer(
            {
                "input_ids": draw.integers(0, 900, (1, count)),
                "attention_mask": np.ones((1, past + count), np.int64),
                "position_ids": np.arange(past, past + count)[None],
            }
        )["logits"]
        found.append(logits[0, -1].copy())
        past += count
    return np.array(found)


@pytest.mark.matrix
@pytest.mark.parametrize(("name", "weightless"), beside_by_turns(KINDS, ["YES", "NO"]))
def test_openvino_equals_the_interpreter(exported, name: str, weightless: str) -> None:
    options = {"INFERENCE_PRECISION_HINT": "f32", "ENABLE_WEIGHTLESS": weightless}
    expected = converse(InterpreterDevice(), exported(name), **options)
    found = converse(OpenVINODevice(), exported(name), **options)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_states_have_the_requested_precision(exported, precision: str) -> None:
    graph = split(read_ir(exported("llama_int8")), 1, 63)
    config = {**CONFIG, "INFERENCE_PRECISION_HINT": precision}
    loaded = OpenVINODevice().load(OpenVINODevice().compile(graph, config))
    kinds = {info.element for info in (*loaded.inputs, *loaded.outputs) if "past" in info.name}
    assert kinds == {precision}


@pytest.mark.matrix
@pytest.mark.parametrize(("precision", "bound"), [("f16", 5e-3), ("bf16", 5e-2)])
def test_narrow_types_have_small_errors(exported, precision: str, bound: float) -> None:
    """On a processor without f16, the CPU plugin computes in bf16 instead of f16."""
    if "FP16" not in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        bound = max(bound, 1e-2)
    options = {"INFERENCE_PRECISION_HINT": precision}
    expected = converse(InterpreterDevice(), exported("llama_fp16"), INFERENCE_PRECISION_HINT="f32")
    found = converse(OpenVINODevice(), exported("llama_fp16"), **options)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert 1e-6 < error < bound


def test_a_weightless_program_has_no_weights_and_reads_them_in_place(exported) -> None:
    device = OpenVINODevice()
    path = exported("llama_fp16")
    file = np.fromfile(path.with_suffix(".bin"), np.uint8)
    graph = split(read_ir(path), 1, 63)
    program = device.compile(graph, {**CONFIG, "ENABLE_WEIGHTLESS": "YES"})
    assert len(program) < file.size / 4
    loaded = device.load(program)
    run = loaded.create_program()
    memory = HostMemory(file)
    for info in (*loaded.inputs, *loaded.outputs):
        if info.name.startswith(WEIGHT_PREFIX):
            offset = int(info.name.removeprefix(WEIGHT_PREFIX).split("_")[0])
            run.bind(info.name, memory, offset)
        else:
            run.bind(info.name, device.allocate(1 << 16), 0)
    run.run()


def test_programs_share_one_compilation(exported, monkeypatch: pytest.MonkeyPatch) -> None:
    device = OpenVINODevice()
    options = LENGTHS | {"NPUW_LLM_ENABLE_CONTINUOUS_PREFILL": "NO"}
    compiled = Core(device=device).compile_model(exported("llama_fp16"), "NPU", options)
    calls: list[object] = []
    real = device._core.compile_model

    class Counting:
        def compile_model(self, *arguments: Any) -> Any:
            calls.append(arguments)
            return real(*arguments)

    models = list(compiled._compiled.models.values())
    for loaded in models:
        monkeypatch.setattr(loaded, "_core", Counting())
    for _ in range(3):
        compiled.create_infer_request()
    assert len(calls) == len(models) == 3


def test_an_output_may_overlap_an_input() -> None:
    """OpenVINO may write results before it has read all inputs, and must not change them."""
    kind = tensor("f32", (64, 64))
    model, (x,) = Model.build([("x", kind)])
    g = GraphBuilder(model)
    model.set_outputs([("y", g.matmul(x, x, False, name="square"))])
    device = OpenVINODevice()
    run = device.load(device.compile(model, CONFIG)).create_program()
    memory = device.allocate(kind_bytes := 64 * 64 * 4)
    run.bind("x", memory, 0)
    run.bind("y", memory, 0)
    values = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    memory.data[:kind_bytes] = values.view(np.uint8).reshape(-1)
    run.run()
    found = memory.data.view(np.float32).reshape(64, 64)
    np.testing.assert_allclose(found, values @ values, rtol=1e-4, atol=1e-4)


def test_two_outputs_may_be_one_tensor_or_an_input() -> None:
    model, (x,) = Model.build([("x", tensor("f32", (2, 3)))])
    g = GraphBuilder(model)
    twice = g.op(elementwise.Add, x, x, name="twice")
    model.set_outputs([("a", twice), ("b", twice), ("c", x)])
    device = OpenVINODevice()
    run = device.load(device.compile(model, CONFIG)).create_program()
    memory = {name: device.allocate(24) for name in "xabc"}
    for name, each in memory.items():
        run.bind(name, each, 0)
    memory["x"].data.view(np.float32)[:] = range(6)
    run.run()
    for name, factor in (("a", 2), ("b", 2), ("c", 1)):
        assert memory[name].data.view(np.float32).tolist() == [factor * v for v in range(6)]


@pytest.mark.parametrize("damage", ["mark", "head", "xml", "weights", "names", "results", "length"])
def test_a_damaged_program_is_rejected(damage: str) -> None:
    device = OpenVINODevice()
    good = device.compile(small_graph(), CONFIG)
    bad = {
        "mark": b"X" + good[1:],
        "head": good.replace(b'{"settings"', b'{"sottings"'),
        "xml": good.replace(b"<layers>", b"<loyers>"),
        "weights": good[:-40],
        "names": good.replace(b'"inputs":["x",', b'"inputs":['),
        "results": good.replace(b'"of":"results","index":0', b'"of":"results","index":7'),
        "length": good[:12] + b"\xff" * 8 + good[20:],
    }[damage]
    assert bad != good
    with pytest.raises(DeviceError):
        device.load(bad)
    device.load(good)


def test_a_graph_that_openvino_rejects_is_an_error_with_the_reason() -> None:
    kind = tensor("f32", (-1, 4))
    model, (x,) = Model.build([("x", kind)])
    g = GraphBuilder(model)
    model.set_outputs([("y", g.op(elementwise.Add, x, x))])
    with pytest.raises(ModelError, match="static"):
        OpenVINODevice().compile(model, CONFIG)


def test_without_the_package_only_this_device_fails_with_the_remedy() -> None:
    program = """
import sys
sys.modules["openvino"] = None                     # as if it were not installed
from npuw_layer import Core
from npuw_layer.errors import DeviceError
import npuw_layer.backends.openvino
try:
    npuw_layer.backends.openvino.OpenVINODevice()
except DeviceError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert "pip install openvino" in said.stdout


def test_signals_are_handled_when_another_thread_drops_the_device() -> None:
    """A signal after OpenVINO's CPU plugin was unloaded in that thread would end the process."""
    program = """if True:
        import signal, threading
        from npuw_layer.backends.openvino import OpenVINODevice
        from npuw_layer.testing.check_device import CONFIG, small_graph
        device = OpenVINODevice()
        loaded = device.load(device.compile(small_graph(), CONFIG))
        program = loaded.create_program()
        for info in (*loaded.inputs, *loaded.outputs):
            program.bind(info.name, device.allocate(1024), 0)
        program.run()
        held = [device, loaded, program]
        del device, loaded, program
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
        signal.signal(signal.SIGINT, lambda *_: print("handled"))
        signal.raise_signal(signal.SIGINT)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "handled\n"), done.stderr
