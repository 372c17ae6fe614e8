"""MODEL_PRIORITY and WORKLOAD_TYPE: order of programs that wait for the NPU."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from compiler_layer.writers.openvino_ir import write_ir
from driver_layer import ze
from driver_layer.npu.turns import Turns
from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.errors import OptionError

SHAPE = (4, 16)
THROUGH = {"NPU_USE_NPUW": "YES"}


@pytest.fixture(scope="module")
def doubling(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model that computes y = x + x."""
    model, (x,) = Model.build([("x", tensor("f32", SHAPE))])
    model.set_outputs([("y", GraphBuilder(model).op(elementwise.Add, x, x, name="y"))])
    path = tmp_path_factory.mktemp("doubling") / "model.xml"
    write_ir(model, path)
    return path


@pytest.fixture
def engines() -> Turns:
    """Return the engines of the device that all models here share."""
    return ze.zeDeviceGet(ze.simulated_driver("4000"))[0].npu.engines


def second_overtakes(
    model: Path,
    engines: Turns,
    first: Mapping[str, str],
    second: Mapping[str, str],
    core: Core | None = None,
) -> bool:
    """Start two requests that both wait; return whether the second runs first."""
    core = core or Core()
    between = core.get_default_context("NPU").create_tensor("f32", SHAPE, {})
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    requests = [
        core.compile_model(model, "NPU", {**exact, **options}).create_infer_request()
        for options in (first, second)
    ]
    requests[0].set_tensor("y", between)
    requests[1].set_tensor("x", between)
    for request in requests:
        request.infer()  # the preparations of a first run need the engines, too
    with engines:
        for number, request in enumerate(requests):
            request.start_async({"x": np.ones(SHAPE, np.float32)} if not number else None)
            deadline = time.monotonic() + 60
            while engines.waiting <= number:
                assert time.monotonic() < deadline
                time.sleep(0.0005)
    for request in requests:
        request.wait()
    (found,) = np.unique(requests[1].get_tensor("y").data)
    assert found in (0, 4)
    return not found


@pytest.mark.parametrize(
    ("first", "second", "overtakes"),
    [
        ({}, {}, False),
        ({}, {"MODEL_PRIORITY": "HIGH"}, True),
        ({"MODEL_PRIORITY": "LOW"}, {}, True),
        ({}, {"MODEL_PRIORITY": "LOW"}, False),
        ({"WORKLOAD_TYPE": "EFFICIENT"}, {"MODEL_PRIORITY": "LOW"}, True),
        ({**THROUGH, "MODEL_PRIORITY": "LOW"}, {**THROUGH, "NPUW_DEVICES": "NPU,CPU"}, True),
        (THROUGH, {**THROUGH, "NPUW_DEVICES": "NPU,CPU", "MODEL_PRIORITY": "HIGH"}, True),
    ],
)
def test_the_more_urgent_model_runs_first(doubling, engines, first, second, overtakes) -> None:
    assert second_overtakes(doubling, engines, first, second) is overtakes


@pytest.mark.parametrize(
    "options", [{"MODEL_PRIORITY": "HIGH"}, {"WORKLOAD_TYPE": "EFFICIENT"}], ids=str
)
@pytest.mark.parametrize("devices", ["CPU", "OPENVINO_CPU", "CPU,OPENVINO_CPU"])
def test_devices_without_scheduling_reject_the_options(doubling, options, devices) -> None:
    config = {**THROUGH, "NPUW_DEVICES": devices, **options}
    with pytest.raises(OptionError, match="MODEL_PRIORITY, WORKLOAD_TYPE"):
        Core().compile_model(doubling, "NPU", config)


def test_the_next_model_on_a_device_has_its_own_urgency(doubling, engines) -> None:
    core = Core(device=LevelZeroDevice(StaticCompiler(), "4000"))
    assert second_overtakes(doubling, engines, {"MODEL_PRIORITY": "LOW"}, {}, core)
