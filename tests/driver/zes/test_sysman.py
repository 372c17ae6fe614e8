"""Sysman: properties and counters of the simulated device."""

from __future__ import annotations

import numpy as np
import pytest
from tests.driver.ze.conftest import Rig

from driver_layer import ze, zes
from driver_layer.testing.blobs import DEPTH, ROWS, dense_blob


@pytest.fixture
def rig() -> Rig:
    zes.zesInit(0)
    (driver,) = zes.zesDriverGet()
    (device,) = zes.zesDeviceGet(driver)
    context = ze.zeContextCreate(driver)
    table = ze.zeDriverGetExtensionFunctionAddress(driver, "ZE_extension_graph")
    return Rig(device, context, table, ze.zeCommandQueueCreate(context, device))


def test_a_device_has_the_properties_of_the_core_interface(rig) -> None:
    found = zes.zesDeviceGetProperties(rig.device)
    assert found.core == ze.zeDeviceGetProperties(rig.device)
    assert (found.numSubdevices, found.brandName, found.modelName) == (0, "NPU", "4000")
    assert zes.zesDevicePciGetProperties(rig.device).address.device == 0xB


def test_the_engine_is_active_while_inferences_run(rig) -> None:
    (engine,) = zes.zesDeviceEnumEngineGroups(rig.device)
    assert zes.zesDeviceEnumEngineGroups(rig.device) == [engine]
    assert zes.zesEngineGetProperties(engine).type.name == "ZES_ENGINE_GROUP_COMPUTE_ALL"
    graph = rig.graph(dense_blob())
    rig.arguments(graph, np.ones((ROWS, DEPTH), np.float32))
    commands = rig.recorded(graph)
    before = zes.zesEngineGetActivity(engine)
    rig.execute(*[commands] * 200)
    after = zes.zesEngineGetActivity(engine)
    active, elapsed = after.activeTime - before.activeTime, after.timestamp - before.timestamp
    assert 0 < active <= elapsed
    assert zes.zesEngineGetActivity(engine).activeTime == after.activeTime, "idle"


def test_free_memory_is_what_no_context_has_allocated(rig) -> None:
    (module,) = zes.zesDeviceEnumMemoryModules(rig.device)
    size = zes.zesMemoryGetProperties(module).physicalSize
    before = zes.zesMemoryGetState(module)
    assert before.size == size
    memory = ze.zeMemAllocHost(rig.context, 1 << 20)
    assert before.free - zes.zesMemoryGetState(module).free == 1 << 20
    ze.zeMemFree(rig.context, memory)
    assert zes.zesMemoryGetState(module).free == before.free
