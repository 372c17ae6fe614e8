"""The interfaces below npuw: each of several devices and compilers can replace another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.interpreter import InterpreterDevice
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.openvino import OpenVINODevice
from npuw_layer.backends.protocols import Compiler, Device
from npuw_layer.errors import DeviceError, OptionError
from npuw_layer.execution.devices.placed import Policy
from npuw_layer.execution.devices.several import SeveralDevices
from npuw_layer.execution.devices.staged import StagedDevice
from npuw_layer.testing.check_device import CONFIG, DEVICE_CHECKS, check_compiler, small_graph

SMALL = {
    "NPUW_LLM_MAX_PROMPT_LEN": 64,
    "NPUW_LLM_MIN_RESPONSE_LEN": 64,
    "INFERENCE_PRECISION_HINT": "f32",
}


@pytest.fixture(scope="session")
def serial_compiler(load_module: Callable[[Path], Any]) -> Callable[[], Any]:
    """Return a factory of the serial compiler."""
    return load_module(Path(__file__).parents[1] / "serial_compiler.py").SerialCompiler


def npu(compiler: Compiler) -> Device:
    return LevelZeroDevice(compiler, "4000")


def several() -> Device:
    return SeveralDevices({"NPU": lambda: npu(StaticCompiler()), "CPU": InterpreterDevice})


def checked() -> Device:
    makers = {"OPENVINO_CPU": OpenVINODevice, "NPU": lambda: npu(StaticCompiler())}
    return SeveralDevices(makers, Policy(reference="CPU"), InterpreterDevice)


def staged() -> Device:
    on_npu, on_host = npu(StaticCompiler()), InterpreterDevice()
    return StagedDevice({"prefill": on_host, "generate": on_npu, "head": on_host})


@pytest.mark.matrix
@pytest.mark.parametrize("check", DEVICE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "make",
    [lambda: npu(StaticCompiler()), InterpreterDevice, OpenVINODevice, several, checked, staged],
    ids=[
        "NPU",
        "interpreter",
        "openvino",
        "NPU and interpreter",
        "openvino checked",
        "stages apart",
    ],
)
def test_each_device_satisfies_the_device_protocol(make, check) -> None:
    check(make())


def test_our_compiler_satisfies_the_compiler_protocol() -> None:
    check_compiler(StaticCompiler, npu)


def test_the_serial_compiler_satisfies_the_compiler_protocol(serial_compiler) -> None:
    check_compiler(serial_compiler, npu)


def last_logits(core: Core, folder: Path, ids: np.ndarray) -> np.ndarray:
    request = core.compile_model(folder, "NPU", SMALL).create_infer_request()
    count = ids.shape[1]
    request.infer(
        {
            "input_ids": ids,
            "attention_mask": np.ones((1, count), np.int64),
            "position_ids": np.arange(count)[None],
        }
    )
    return request.get_tensor("logits").data[0, -1]


@pytest.mark.long
def test_a_model_returns_equal_logits_on_all_devices(llama_8m: Path, serial_compiler) -> None:
    ids = np.random.default_rng(0).integers(3, 8000, (1, 7))
    serial = serial_compiler()
    logits = {
        "npuc on the NPU": last_logits(Core(), llama_8m, ids),
        "serial on the NPU": last_logits(Core(compiler=serial), llama_8m, ids),
        "interpreter": last_logits(Core(device=InterpreterDevice()), llama_8m, ids),
        "openvino": last_logits(Core(device=OpenVINODevice()), llama_8m, ids),
    }
    assert serial.compiled == 3, "prefill, generate and the LM head"
    expected = logits.pop("interpreter")
    for name, found in logits.items():
        error = np.abs(found - expected).max() / np.abs(expected).max()
        assert error < 1e-5, f"{name}: {error:.1e}"


def test_devices_and_compilers_are_selected_by_name(llama_8m: Path) -> None:
    options = SMALL | {"NPUW_DEVICES": "CPU"}
    Core().compile_model(llama_8m, "NPU", options)
    with pytest.raises(OptionError, match="NPUW_DEVICES"):
        Core().compile_model(llama_8m, "NPU", SMALL | {"NPUW_DEVICES": "TPU"})
    with pytest.raises(OptionError, match="NPUW_COMPILER"):
        Core().compile_model(llama_8m, "NPU", SMALL | {"NPUW_COMPILER": "gcc"})


def test_a_program_for_another_platform_is_rejected_by_the_device() -> None:
    blob = StaticCompiler().compile(small_graph(), {**CONFIG, "NPU_PLATFORM": "3720"})
    with pytest.raises(DeviceError, match="made for architecture 3"):
        npu(StaticCompiler()).load(blob)


def test_an_unknown_platform_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(DeviceError, match="choose 3720, 4000, 5010"):
        LevelZeroDevice(StaticCompiler(), "9999")
