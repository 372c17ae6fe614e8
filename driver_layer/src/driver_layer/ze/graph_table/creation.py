"""Creation and destruction of graphs, from native blobs or from models.

Source: docs/reference/level_zero.md#graph-extension, docs/reference/level_zero.md#graph-structures.
"""

from __future__ import annotations

import numpy as np

from driver_layer.errors import ZeError
from driver_layer.npu.memory import PAGE_BYTES
from driver_layer.ze import graph_types as t
from driver_layer.ze.calls import checked
from driver_layer.ze.context import check_device, ze_context_handle_t
from driver_layer.ze.driver import ze_device_handle_t
from driver_layer.ze.graph import ze_graph_handle_t
from driver_layer.ze.graph_build_log import GraphCreationError, ze_graph_build_log_handle_t
from driver_layer.ze.graph_compiler import compiling, needed_compiler
from driver_layer.ze.result import check_known, failed, ze_result_t

_Flags = t.ze_graph_properties_flag_t
_PERSISTENT = t.ze_graph_flags_t.ZE_GRAPH_FLAG_INPUT_GRAPH_PERSISTENT
_PROFILING = t.ze_graph_flags_t.ZE_GRAPH_FLAG_ENABLE_PROFILING


class GraphCreation:
    """Functions that create and destroy graphs."""

    @checked
    def pfnCreate(
        self, hContext: ze_context_handle_t, hDevice: ze_device_handle_t, desc: t.ze_graph_desc_t
    ) -> ze_graph_handle_t:
        """Create a graph without flags; otherwise as pfnCreate2."""
        return _create(hContext, hDevice, _with_flags(desc))

    @checked
    def pfnCreate2(
        self,
        hContext: ze_context_handle_t,
        hDevice: ze_device_handle_t,
        desc: t.ze_graph_desc_2_t,
    ) -> ze_graph_handle_t:
        """Create a graph from a native blob, or compile a model.

        Raises:
            ZeError: INVALID_NATIVE_BINARY: the blob is for another platform or version;
                INVALID_ARGUMENT: the blob is malformed, the format is unknown, or the device is not
                the context's; INVALID_SIZE: the input is empty; INVALID_ENUMERATION: unknown flags;
                UNSUPPORTED_ALIGNMENT: a persistent input does not consist of complete pages;
                UNSUPPORTED_FEATURE: there is no compiler, or it does not support the model;
                DEPENDENCY_UNAVAILABLE, UNKNOWN: the compiler failed.
        """
        return _create(hContext, hDevice, desc)

    @checked
    def pfnCreate3(
        self,
        hContext: ze_context_handle_t,
        hDevice: ze_device_handle_t,
        desc: t.ze_graph_desc_2_t,
    ) -> tuple[ze_graph_handle_t, ze_graph_build_log_handle_t]:
        """Create a graph as pfnCreate2, and its build log.

        Raises:
            GraphCreationError: as pfnCreate2; ``log`` has the build log.
        """
        log = ze_graph_build_log_handle_t(hContext)
        try:
            return _create(hContext, hDevice, desc), log
        except ZeError as error:
            log.text = error.message
            raise GraphCreationError(error, log) from error

    @checked
    def pfnDestroy(self, hGraph: ze_graph_handle_t) -> None:
        """Unload a graph."""
        hGraph.destroy()


def _with_flags(desc: t.ze_graph_desc_t) -> t.ze_graph_desc_2_t:
    return t.ze_graph_desc_2_t(desc.format, desc.pInput, desc.pBuildFlags, 0, desc.pNext)


def _create(
    context: ze_context_handle_t, device: ze_device_handle_t, desc: t.ze_graph_desc_2_t
) -> ze_graph_handle_t:
    check_device(context, device)
    check_known(desc.flags, t.ze_graph_flags_t)
    content = memoryview(desc.pInput).cast("B")
    if not content.nbytes:
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_SIZE, "the graph's input is empty")
    if desc.format == t.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE:
        origin = _Flags.ZE_GRAPH_PROPERTIES_FLAG_PRE_COMPILED
        if desc.flags & _PERSISTENT:
            _check_pages(content)
        else:
            origin |= _Flags.ZE_GRAPH_PROPERTIES_FLAG_NO_STANDARD_ALLOCATION
        return ze_graph_handle_t(context, content, origin)
    with compiling():
        compiler = needed_compiler()
        blob = compiler.compile(content, _build_flags(desc), device.platform)
    of_driver = _Flags.ZE_GRAPH_PROPERTIES_FLAG_NO_STANDARD_ALLOCATION
    origin = _Flags.ZE_GRAPH_PROPERTIES_FLAG_COMPILED | of_driver
    return ze_graph_handle_t(context, blob, origin)


def _build_flags(desc: t.ze_graph_desc_2_t) -> str:
    """Return the build flags, with the option that the profiling flag stands for."""
    flags = desc.pBuildFlags or ""
    if desc.flags & _PROFILING:
        flags += "" if "--config" in flags else " --config"
        flags += ' PERF_COUNT="YES"'
    return flags


def _check_pages(content: memoryview) -> None:
    address = np.frombuffer(content, np.uint8).ctypes.data
    if address % PAGE_BYTES or content.nbytes % PAGE_BYTES:
        message = f"a persistent input must begin and end at pages of {PAGE_BYTES} bytes"
        raise failed(ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT, message)
