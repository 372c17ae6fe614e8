"""Creation and destruction of graphs, from native blobs or from models; blobs and build logs.

The blob of a model is taken from the driver's cache, or compiled and stored there.

Source: docs/reference/level_zero.md#graph-extension, docs/reference/level_zero.md#graph-structures,
docs/reference/level_zero.md#cache-of-compiled-graphs.
"""

from __future__ import annotations

import logging

from driver_layer.errors import ZeError
from driver_layer.ze import errors
from driver_layer.ze import graph_types as t
from driver_layer.ze.calls import Handle, checked
from driver_layer.ze.context import check_device, ze_context_handle_t
from driver_layer.ze.driver import ze_device_handle_t
from driver_layer.ze.graph import ze_graph_handle_t
from driver_layer.ze.graph_cache import disk_cache, key_of
from driver_layer.ze.graph_compiler import compiling, needed_compiler

_Flags = t.ze_graph_properties_flag_t
_PERSISTENT = t.ze_graph_flags_t.ZE_GRAPH_FLAG_INPUT_GRAPH_PERSISTENT
_OF_DRIVER = _Flags.ZE_GRAPH_PROPERTIES_FLAG_NO_STANDARD_ALLOCATION
_COMPILED = _Flags.ZE_GRAPH_PROPERTIES_FLAG_COMPILED | _OF_DRIVER
_FROM_CACHE = _Flags.ZE_GRAPH_PROPERTIES_FLAG_LOADED_FROM_CACHE | _OF_DRIVER
_UNCACHED = t.ze_graph_flags_t.ZE_GRAPH_FLAG_DISABLE_CACHING
_PROFILING = t.ze_graph_flags_t.ZE_GRAPH_FLAG_ENABLE_PROFILING

_LOG = logging.getLogger(__name__)


class ze_graph_build_log_handle_t(Handle):
    """Log of the creation of one graph: what the cache did, or the reason for a failure."""

    def __init__(self, context: ze_context_handle_t) -> None:
        super().__init__()
        self.context = context
        self.text = ""


class GraphCreationError(ZeError):
    """Failure of pfnCreate3.

    Args:
        error: the failure.
        log: the build log, a handle that C's function writes in this case, too.
    """

    def __init__(self, error: ZeError, log: ze_graph_build_log_handle_t) -> None:
        super().__init__(error.code, error.message)
        self.log = log


class GraphCreation:
    """Functions that create and destroy graphs, and return the results of creations."""

    @checked
    def pfnCreate(
        self, hContext: ze_context_handle_t, hDevice: ze_device_handle_t, desc: t.ze_graph_desc_t
    ) -> ze_graph_handle_t:
        """Create a graph without flags; otherwise as pfnCreate2."""
        full = t.ze_graph_desc_2_t(desc.format, desc.pInput, desc.pBuildFlags, 0, desc.pNext)
        return _create(hContext, hDevice, full)[0]

    @checked
    def pfnCreate2(
        self,
        hContext: ze_context_handle_t,
        hDevice: ze_device_handle_t,
        desc: t.ze_graph_desc_2_t,
    ) -> ze_graph_handle_t:
        """Create a graph from a native blob, or from a model, compiled now or in the cache.

        Raises:
            ZeError: INVALID_NATIVE_BINARY: the blob is for another platform or version;
                INVALID_ARGUMENT: the blob is malformed, the format is unknown, or the device is not
                the context's; INVALID_SIZE: the input is empty; INVALID_ENUMERATION: unknown flags;
                UNSUPPORTED_FEATURE: there is no compiler, or it does not support the model;
                DEPENDENCY_UNAVAILABLE, UNKNOWN: the compiler failed.
        """
        return _create(hContext, hDevice, desc)[0]

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
            graph, log.text = _create(hContext, hDevice, desc)
        except ZeError as error:
            log.text = error.message
            raise GraphCreationError(error, log) from error
        return graph, log

    @checked
    def pfnDestroy(self, hGraph: ze_graph_handle_t) -> None:
        """Unload a graph."""
        hGraph.destroy()

    @checked
    def pfnGetNativeBinary(self, hGraph: ze_graph_handle_t) -> bytes:
        """Return a copy of the blob."""
        return bytes(hGraph.binary)

    @checked
    def pfnGetNativeBinary2(self, hGraph: ze_graph_handle_t) -> memoryview:
        """Return a read-only view of the blob, valid until the graph is destroyed."""
        return hGraph.binary.toreadonly()

    @checked
    def pfnBuildLogGetString(self, hGraph: ze_graph_handle_t | None = None) -> str:
        """Return the log of this thread's latest creation or error, whichever graph is given."""
        return errors.latest_log()

    @checked
    def pfnBuildLogGetString2(self, hGraphBuildLog: ze_graph_build_log_handle_t) -> str:
        """Return the text of a build log."""
        return hGraphBuildLog.text

    @checked
    def pfnBuildLogDestroy(self, hGraphBuildLog: ze_graph_build_log_handle_t) -> None:
        """Destroy a build log."""
        hGraphBuildLog.alive = False


def _create(
    context: ze_context_handle_t, device: ze_device_handle_t, desc: t.ze_graph_desc_2_t
) -> tuple[ze_graph_handle_t, str]:
    """Return a graph and its build log, which becomes this thread's latest log."""
    check_device(context, device)
    errors.check_known(desc.flags, t.ze_graph_flags_t)
    content = memoryview(desc.pInput).cast("B")
    if not content.nbytes:
        raise errors.invalid_size("the graph's input is empty")
    if desc.format == t.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE:
        origin = _Flags.ZE_GRAPH_PROPERTIES_FLAG_PRE_COMPILED
        if not desc.flags & _PERSISTENT:
            origin |= _Flags.ZE_GRAPH_PROPERTIES_FLAG_NO_STANDARD_ALLOCATION
        graph, log = ze_graph_handle_t(context, content, origin), ""
    else:
        graph, log = _of_model(context, desc)
    errors.keep_log(log)
    return graph, log


def _of_model(
    context: ze_context_handle_t, desc: t.ze_graph_desc_2_t
) -> tuple[ze_graph_handle_t, str]:
    """Return the graph of a model, and its build log.

    Raises:
        ZeError: as pfnCreate2.
    """
    platform, flags = context.device.platform, _build_flags(desc)
    with compiling():
        compiler = needed_compiler()
        key = "" if desc.flags & _UNCACHED else key_of(desc, flags, compiler, platform)
    cached = _cached(context, key) if key else None
    if cached is not None:
        return cached, _status("found")
    with compiling():
        blob = compiler.compile(memoryview(desc.pInput).cast("B"), flags, platform)
    _LOG.info("compiled a model to a blob of %d bytes", len(blob))
    graph = ze_graph_handle_t(context, blob, _COMPILED)
    if not key:
        return graph, ""
    disk_cache().write(key, blob)
    return graph, _status("stored")


def _cached(context: ze_context_handle_t, key: str) -> ze_graph_handle_t | None:
    """Return the graph of a cached blob, which is no more trusted than a caller's blob."""
    blob = disk_cache().read(key)
    if blob is None:
        return None
    try:
        return ze_graph_handle_t(context, blob, _FROM_CACHE)
    except ZeError as error:
        _LOG.warning("the cached blob of a model cannot be used, it is compiled again: %s", error)
        return None


def _build_flags(desc: t.ze_graph_desc_2_t) -> str:
    """Return the build flags, with the option that the profiling flag stands for."""
    flags = desc.pBuildFlags or ""
    if desc.flags & _PROFILING:
        flags += "" if "--config" in flags else " --config"
        flags += ' PERF_COUNT="YES"'
    return flags


def _status(word: str) -> str:
    """Return the line of the build log by which the public driver reports the cache."""
    return f"ZE DynamicCaching cache_status_t: cache_status_t::{word}\n"
