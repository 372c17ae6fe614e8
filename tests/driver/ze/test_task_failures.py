"""Failures of tasks name task, operation and address, with both engines."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import pytest

from driver_layer import ze
from driver_layer.abi.layer_map import SECTION_NAME, Layer, encode_layer_map
from driver_layer.abi.tasks import DMA_TASK
from driver_layer.engines.choose import ENGINE_VARIABLE
from driver_layer.engines.native.dispatch.team import Team
from driver_layer.engines.reference import dpu
from driver_layer.engines.task_by_task import TaskByTask
from driver_layer.errors import DeviceFault, OutOfMemory
from driver_layer.npu.device import Device
from driver_layer.testing.blobs import dense_builder, is_expected
from driver_layer.testing.elf_builder import BlobBuilder

r = ze.ze_result_t
ENGINES = ("reference", "native")


def builder() -> BlobBuilder:
    """Return the layer with a layer map."""
    made = dense_builder()
    layers = [Layer("x", 0), Layer("w", 0, "Const"), Layer("fc1", 0, "MatMul")]
    tasks = {("dma_ddr", 0): [0, 1], ("dpu", 0): [2], ("shave", 0): [2]}
    made.add(SECTION_NAME, encode_layer_map(layers, tasks))
    return made


def nothing_left(*_: Any, **__: Any) -> NoReturn:
    raise MemoryError("Unable to allocate 2.00 TiB")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(ENGINE_VARIABLE, request.param)
    return request.param


@pytest.fixture
def own_rig(engine: str, rig: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the rig with a device of the chosen engine."""
    del engine  # the environment names it
    monkeypatch.setattr(rig.device, "npu", Device(rig.device.platform))
    return rig


def run(rig: Any, blob: bytes, x: np.ndarray) -> ze.Memory:
    graph = rig.graph(blob)
    y = rig.arguments(graph, x)
    rig.execute(rig.recorded(graph))
    return y


def test_a_transfer_outside_memory_names_task_operation_and_address(own_rig, x) -> None:
    made = builder()
    section = next(each for each in made.sections if each.name == "task.dma.0.0")
    loads = np.frombuffer(section.data, DMA_TASK).copy()
    for side in ("src", "dst"):
        loads["descriptor"][f"{side}_width"][1] = 1 << 22
    section.data = loads.tobytes()
    error = own_rig.fails(r.ZE_RESULT_ERROR_DEVICE_LOST, lambda: run(own_rig, made.build(), x))
    fault = error.__cause__
    assert isinstance(fault, DeviceFault)
    assert (fault.engine, fault.task, fault.op) == ("DMA port 0 DDR", 1, "Const w")
    assert fault.address is not None
    assert "DMA port 0 DDR, task 1 (Const w): access to 4194304" in str(error)


def test_a_task_without_memory_is_out_of_memory_and_names_task_and_operation(
    own_rig, engine: str, x, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        if engine == "reference":
            patched.setattr(dpu, "narrowed", nothing_left)
        else:
            patched.setattr(Team, "_grow_scratch", nothing_left)
        code = r.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
        error = own_rig.fails(code, lambda: run(own_rig, builder().build(), x))
    fault = error.__cause__
    assert isinstance(fault, OutOfMemory)
    assert fault.op == "MatMul fc1"
    assert "task 0 (MatMul fc1): the host has no memory left: Unable to allocate 2" in str(fault)
    assert is_expected(own_rig.values(run(own_rig, builder().build(), x)), x)  # usable again


def test_a_program_without_memory_is_out_of_memory(
    own_rig, engine: str, x, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = TaskByTask if engine == "reference" else type(own_rig.device.npu._core._executor)
    monkeypatch.setattr(executor, "order", nothing_left)
    code = r.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
    error = own_rig.fails(code, lambda: run(own_rig, builder().build(), x))
    assert "the host has no memory left for the program" in str(error)
