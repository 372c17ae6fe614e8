"""Properties of graphs, of a device's graph support, and of a context's memory.

Source: docs/reference/level_zero.md#graph-extension, docs/reference/level_zero.md#graph-structures.
"""

from __future__ import annotations

from driver_layer.abi.notes import Version
from driver_layer.npu.memory import MemoryKind
from driver_layer.ze import graph_types as t
from driver_layer.ze.calls import checked
from driver_layer.ze.context import ze_context_handle_t
from driver_layer.ze.driver import GRAPH_EXTENSION_VERSION, ze_device_handle_t
from driver_layer.ze.graph import ze_graph_handle_t
from driver_layer.ze.graph_cache import disk_cache
from driver_layer.ze.graph_compiler import MAX_OPSET, installed_compiler

_DDR = t.ze_graph_memory_query_type_t.ZE_GRAPH_QUERY_MEMORY_DDR
_STAGE = t.ze_graph_init_stage_t.ZE_GRAPH_STAGE_INITIALIZE
_NATIVE = t.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE
_MODEL = t.ze_graph_format_t.ZE_GRAPH_FORMAT_NGRAPH_LITE


class GraphProperties:
    """Functions that describe graphs and the support for them."""

    @checked
    def pfnGetProperties(self, hGraph: ze_graph_handle_t) -> t.ze_graph_properties_t:
        """Return the number of arguments."""
        return t.ze_graph_properties_t(len(hGraph.tensors))

    @checked
    def pfnGetProperties2(self, hGraph: ze_graph_handle_t) -> t.ze_graph_properties_2_t:
        """Return the number of arguments, and the stage of initialisation."""
        return t.ze_graph_properties_2_t(len(hGraph.tensors), _STAGE)

    @checked
    def pfnGetProperties3(self, hGraph: ze_graph_handle_t) -> t.ze_graph_properties_3_t:
        """Return the number of arguments, the stage of initialisation, and flags."""
        return t.ze_graph_properties_3_t(len(hGraph.tensors), _STAGE, hGraph.flags)

    @checked
    def pfnDeviceGetGraphProperties(
        self, hDevice: ze_device_handle_t
    ) -> t.ze_device_graph_properties_t:
        """Describe the graphs that a device supports.

        Raises:
            ZeError: DEPENDENCY_UNAVAILABLE: the installed compiler cannot be imported.
        """
        return t.ze_device_graph_properties_t(GRAPH_EXTENSION_VERSION, *_compiler_facts())

    @checked
    def pfnDeviceGetGraphProperties2(
        self, hDevice: ze_device_handle_t
    ) -> t.ze_device_graph_properties_2_t:
        """Describe the graphs that a device supports, with the versions of blobs."""
        platform = hDevice.platform
        versions = map(_version, (platform.loader_abi, platform.firmware_inference))
        facts = _compiler_facts()
        return t.ze_device_graph_properties_2_t(GRAPH_EXTENSION_VERSION, *facts, *versions)

    @checked
    def pfnQueryContextMemory(
        self, hContext: ze_context_handle_t, type: t.ze_graph_memory_query_type_t = _DDR
    ) -> t.ze_graph_memory_query_t:
        """Return total and allocated bytes: of a context's memory, or of the cache on disk."""
        if type != _DDR:
            cached = disk_cache()
            return t.ze_graph_memory_query_t(cached.limit, cached.used_bytes)
        total = sum(kind.value.end - kind.value.begin for kind in MemoryKind)
        return t.ze_graph_memory_query_t(total, hContext.space.allocated_bytes)


def _compiler_facts() -> tuple[t.ze_graph_compiler_version_info_t, int, int]:
    """Return version, formats and newest opset of the compiler."""
    compiler = installed_compiler()
    if compiler is None:
        return t.ze_graph_compiler_version_info_t(0, 0), _NATIVE, 0
    return t.ze_graph_compiler_version_info_t(*compiler.version), _NATIVE | _MODEL, MAX_OPSET


def _version(version: Version) -> t.ze_graph_version_info_t:
    return t.ze_graph_version_info_t(version.major, version.minor, version.patch)
