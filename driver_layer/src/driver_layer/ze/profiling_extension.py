"""The profiling extension's table of functions, 1.0.

Source: fact sheet elf_driver §5.2. In the public driver a graph must have been compiled for it;
here all that say whose their tasks are can be profiled, as the times are simulated anyway.
"""

from __future__ import annotations

from typing import Literal, overload

from driver_layer.errors import ZeError
from driver_layer.ze import profiling_types as t
from driver_layer.ze.driver import (
    PROFILING_EXTENSION,
    PROFILING_EXTENSION_VERSION,
    extension_tables,
    ze_device_handle_t,
)
from driver_layer.ze.graph import ze_graph_handle_t
from driver_layer.ze.handles import check
from driver_layer.ze.profiling import (
    ze_graph_profiling_pool_handle_t,
    ze_graph_profiling_query_handle_t,
)
from driver_layer.ze.result import failed, ze_result_t

_LAYERS, _TASKS, _RAW = t.ze_graph_profiling_type_t
_Layers = Literal[t.ze_graph_profiling_type_t.ZE_GRAPH_PROFILING_LAYER_LEVEL]
_Tasks = Literal[t.ze_graph_profiling_type_t.ZE_GRAPH_PROFILING_TASK_LEVEL]
_Raw = Literal[t.ze_graph_profiling_type_t.ZE_GRAPH_PROFILING_RAW]
_Found = tuple[t.ze_profiling_layer_info, ...] | tuple[t.ze_profiling_task_info, ...] | bytes


class ze_graph_profiling_dditable_ext_t:
    """The functions; all check their handles, and raise ZeError where C returns a code."""

    def pfnProfilingPoolCreate(
        self, hGraph: ze_graph_handle_t, count: int
    ) -> ze_graph_profiling_pool_handle_t:
        """Make room for queries.

        Raises:
            ZeError: INVALID_SIZE: for none; UNSUPPORTED_FEATURE: the graph does not say whose its
                tasks are; INVALID_ARGUMENT: what it says is malformed.
        """
        return ze_graph_profiling_pool_handle_t(check(hGraph, ze_graph_handle_t), count)

    def pfnProfilingPoolDestroy(self, hProfilingPool: ze_graph_profiling_pool_handle_t) -> None:
        """End a pool.

        Raises:
            ZeError: HANDLE_OBJECT_IN_USE: queries of it are left.
        """
        pool = check(hProfilingPool, ze_graph_profiling_pool_handle_t)
        if pool.queries:
            message = f"{len(pool.queries)} queries of the pool are left; destroy them first"
            raise failed(ze_result_t.ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, message)
        pool.alive = False

    def pfnProfilingQueryCreate(
        self, hProfilingPool: ze_graph_profiling_pool_handle_t, index: int
    ) -> ze_graph_profiling_query_handle_t:
        """Make a query at a place of a pool; inferences are recorded with it.

        Raises:
            ZeError: INVALID_ARGUMENT: there is no such place, or it is taken.
        """
        pool = check(hProfilingPool, ze_graph_profiling_pool_handle_t)
        if not 0 <= index < pool.count or index in pool.queries:
            message = f"place {index} of a pool of {pool.count} queries is taken, or not there"
            raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)
        query = pool.queries[index] = ze_graph_profiling_query_handle_t(pool, index)
        return query

    def pfnProfilingQueryDestroy(self, hProfilingQuery: ze_graph_profiling_query_handle_t) -> None:
        """End a query; what was recorded with it still runs."""
        query = check(hProfilingQuery, ze_graph_profiling_query_handle_t)
        del query.pool.queries[query.index]
        query.alive = False

    @overload
    def pfnProfilingQueryGetData(
        self, hProfilingQuery: ze_graph_profiling_query_handle_t, profilingType: _Layers
    ) -> tuple[t.ze_profiling_layer_info, ...]: ...
    @overload
    def pfnProfilingQueryGetData(
        self, hProfilingQuery: ze_graph_profiling_query_handle_t, profilingType: _Tasks
    ) -> tuple[t.ze_profiling_task_info, ...]: ...
    @overload
    def pfnProfilingQueryGetData(
        self, hProfilingQuery: ze_graph_profiling_query_handle_t, profilingType: _Raw
    ) -> bytes: ...
    def pfnProfilingQueryGetData(
        self,
        hProfilingQuery: ze_graph_profiling_query_handle_t,
        profilingType: t.ze_graph_profiling_type_t,
    ) -> _Found:
        """Give what the last inference with a query left.

        Args:
            hProfilingQuery: the query.
            profilingType: layers and tasks, in the order in which they begin; or the records that
                both are made of, ``abi.layer_map.TASK_TIME``.

        Raises:
            ZeError: NOT_READY: none has run to its end; INVALID_ENUMERATION: no such type;
                INVALID_ARGUMENT: the blob does not say whose all its tasks are.
        """
        query = check(hProfilingQuery, ze_graph_profiling_query_handle_t)
        try:
            data = query.data()
            found: _Found
            if profilingType == _LAYERS:
                found = data.layers
            elif profilingType == _TASKS:
                found = data.tasks
            elif profilingType == _RAW:
                found = data.raw
            else:
                code = ze_result_t.ZE_RESULT_ERROR_INVALID_ENUMERATION
                raise failed(code, f"no profiling type {profilingType}")
        except ZeError as error:
            query.log = str(error)
            raise
        query.log = ""
        return found

    def pfnDeviceGetProfilingDataProperties(
        self, hDevice: ze_device_handle_t
    ) -> t.ze_device_profiling_data_properties_t:
        """Describe a device's profiling."""
        check(hDevice, ze_device_handle_t)
        return t.ze_device_profiling_data_properties_t(PROFILING_EXTENSION_VERSION)

    def pfnProfilingLogGetString(self, hProfilingQuery: ze_graph_profiling_query_handle_t) -> str:
        """Give why a query's data could not be given last; empty if they could."""
        return check(hProfilingQuery, ze_graph_profiling_query_handle_t).log


_TABLE = ze_graph_profiling_dditable_ext_t()
extension_tables[PROFILING_EXTENSION] = lambda: _TABLE
