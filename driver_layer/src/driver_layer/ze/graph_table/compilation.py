"""Graphs of models: taken from the driver's cache, or compiled and stored there.

Source: docs/reference/level_zero.md#cache-of-compiled-graphs.
"""

from __future__ import annotations

import logging

from driver_layer.errors import ZeError
from driver_layer.ze import graph_types as t
from driver_layer.ze.context import ze_context_handle_t
from driver_layer.ze.graph import ze_graph_handle_t
from driver_layer.ze.graph_cache import disk_cache, key_of
from driver_layer.ze.graph_compiler import compiling, needed_compiler

_Flags = t.ze_graph_properties_flag_t
_OF_DRIVER = _Flags.ZE_GRAPH_PROPERTIES_FLAG_NO_STANDARD_ALLOCATION
_COMPILED = _Flags.ZE_GRAPH_PROPERTIES_FLAG_COMPILED | _OF_DRIVER
_FROM_CACHE = _Flags.ZE_GRAPH_PROPERTIES_FLAG_LOADED_FROM_CACHE | _OF_DRIVER
_UNCACHED = t.ze_graph_flags_t.ZE_GRAPH_FLAG_DISABLE_CACHING
_PROFILING = t.ze_graph_flags_t.ZE_GRAPH_FLAG_ENABLE_PROFILING

_LOG = logging.getLogger(__name__)


def graph_of_model(
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
