"""Properties of an NPU by OpenVINO's names (``protocols.DEVICE_FACTS``), read from Level Zero.

Source: docs/reference/npuw.md#driver-discovery; the names and types are those of OpenVINO's NPU
plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from driver_layer import ze
from npuw_layer.backends.level_zero_context import LevelZeroContext

_CAPABILITIES = ("FP16", "INT8", "EXPORT_IMPORT")
"""Capabilities that OpenVINO's NPU plugin reports for every NPU, and this stack supports."""


def _about(npu: LevelZeroContext) -> ze.ze_device_properties_t:
    return ze.zeDeviceGetProperties(npu.handle)


def _driver_version(npu: LevelZeroContext) -> int:
    return ze.zeDriverGetProperties(npu.handle.driver).driverVersion


def _memory(npu: LevelZeroContext) -> ze.ze_graph_memory_query_t:
    graphs: ze.ze_graph_dditable_ext_t = ze.zeDriverGetExtensionFunctionAddress(
        npu.handle.driver, ze.GRAPH_EXTENSION
    )
    return graphs.pfnQueryContextMemory(npu.memory_space)


FACTS: Mapping[str, Callable[[LevelZeroContext], Any]] = {
    "AVAILABLE_DEVICES": lambda npu: [npu.handle.platform.name],
    "FULL_DEVICE_NAME": lambda npu: _about(npu).name,
    "DEVICE_ARCHITECTURE": lambda npu: npu.handle.platform.name,
    "DEVICE_TYPE": lambda _: "integrated",
    "DEVICE_UUID": lambda npu: _about(npu).uuid,
    "EXECUTION_DEVICES": lambda _: "NPU",
    "OPTIMIZATION_CAPABILITIES": lambda _: [*_CAPABILITIES],
    # One inference uses the whole device.
    "OPTIMAL_NUMBER_OF_INFER_REQUESTS": lambda _: 1,
    "NPU_DRIVER_VERSION": _driver_version,
    "NPU_MAX_TILES": lambda npu: _about(npu).numSlices,
    "NPU_DEVICE_TOTAL_MEM_SIZE": lambda npu: _memory(npu).total,
    "NPU_DEVICE_ALLOC_MEM_SIZE": lambda npu: _memory(npu).allocated,
}
"""Reader of each read-only property; sizes are in bytes."""
