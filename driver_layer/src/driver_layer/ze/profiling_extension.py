"""The profiling extension's function table, 1.0: pools and queries of the times of tasks.

Source: docs/reference/level_zero.md#profiling-extension. In the public driver a graph must have
been compiled for it; here all graphs with a layer map can be profiled, as the times are simulated.
The extension does not define the result of a query without a run, so NOT_READY is taken from Level
Zero's timestamp queries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, overload

from driver_layer.errors import ZeError
from driver_layer.ze import driver, errors
from driver_layer.ze import profiling_data as t
from driver_layer.ze.calls import Handle, checked
from driver_layer.ze.graph import ze_graph_handle_t

_LAYERS, _TASKS, _ = t.ze_graph_profiling_type_t
_Layers = Literal[t.ze_graph_profiling_type_t.ZE_GRAPH_PROFILING_LAYER_LEVEL]
_Tasks = Literal[t.ze_graph_profiling_type_t.ZE_GRAPH_PROFILING_TASK_LEVEL]
_Raw = Literal[t.ze_graph_profiling_type_t.ZE_GRAPH_PROFILING_RAW]
_Found = tuple[t.ze_profiling_layer_info, ...] | tuple[t.ze_profiling_task_info, ...] | bytes


class ze_graph_profiling_pool_handle_t(Handle):
    """A pool of profiling queries.

    Args:
        graph: the graph to profile.
        count: maximum number of queries.

    Raises:
        ZeError: INVALID_SIZE: the count is not positive; UNSUPPORTED_FEATURE: the graph has no
            layer map; INVALID_ARGUMENT: its layer map is malformed.
    """

    def __init__(self, graph: ze_graph_handle_t, count: int) -> None:
        super().__init__()
        if count <= 0:
            raise errors.invalid_size(f"count {count}: a pool must have at least one query")
        self.graph = graph
        self.count = count
        self.queries: dict[int, ze_graph_profiling_query_handle_t] = {}
        self.profile = graph.profile


class ze_graph_profiling_query_handle_t(Handle):
    """Profiling data of the latest run of the inferences that were recorded with this query.

    Args:
        pool: the query's pool.
        index: index in the pool.
    """

    def __init__(self, pool: ze_graph_profiling_pool_handle_t, index: int) -> None:
        super().__init__()
        self.pool = pool
        self.index = index
        self.filled = False
        """True if the latest inference has completed."""
        self.log = ""
        """Reason why the latest request for data failed; empty if it succeeded."""

    def profile(self, run: Callable[[], object]) -> None:
        """Run an inference, and record its completion."""
        self.filled = False
        run()
        self.filled = True

    def data(self) -> t.ProfilingData:
        """Return the profiling data.

        Raises:
            ZeError: NOT_READY: no inference ran with the query, or it is running, or failed; else
                as ``GraphProfile.data``.
        """
        if not self.filled:
            raise errors.not_ready(f"no inference with query {self.index} has completed")
        return self.pool.profile.data()


class ze_graph_profiling_dditable_ext_t:
    """The function table; functions check their handles, and raise ZeError for C's result codes."""

    @checked
    def pfnProfilingPoolCreate(
        self, hGraph: ze_graph_handle_t, count: int
    ) -> ze_graph_profiling_pool_handle_t:
        """Create a pool of queries.

        Raises:
            ZeError: INVALID_SIZE: the count is not positive; UNSUPPORTED_FEATURE: the graph has no
                layer map; INVALID_ARGUMENT: its layer map is malformed.
        """
        return ze_graph_profiling_pool_handle_t(hGraph, count)

    @checked
    def pfnProfilingPoolDestroy(self, hProfilingPool: ze_graph_profiling_pool_handle_t) -> None:
        """Destroy a pool.

        Raises:
            ZeError: HANDLE_OBJECT_IN_USE: the pool still has queries.
        """
        pool = hProfilingPool
        if pool.queries:
            message = f"the pool still has {len(pool.queries)} queries; destroy them first"
            raise errors.handle_object_in_use(message)
        pool.alive = False

    @checked
    def pfnProfilingQueryCreate(
        self, hProfilingPool: ze_graph_profiling_pool_handle_t, index: int
    ) -> ze_graph_profiling_query_handle_t:
        """Create a query at an index of a pool; inferences are recorded with the query.

        Raises:
            ZeError: INVALID_ARGUMENT: the index is out of range or in use.
        """
        pool = hProfilingPool
        if not 0 <= index < pool.count or index in pool.queries:
            message = f"index {index} of a pool of {pool.count} queries is out of range or in use"
            raise errors.invalid_argument(message)
        query = pool.queries[index] = ze_graph_profiling_query_handle_t(pool, index)
        return query

    @checked
    def pfnProfilingQueryDestroy(self, hProfilingQuery: ze_graph_profiling_query_handle_t) -> None:
        """Destroy a query; inferences that were recorded with it still run."""
        query = hProfilingQuery
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
    @checked
    def pfnProfilingQueryGetData(
        self,
        hProfilingQuery: ze_graph_profiling_query_handle_t,
        profilingType: t.ze_graph_profiling_type_t,
    ) -> _Found:
        """Return the data of the latest inference with a query.

        Args:
            hProfilingQuery: the query.
            profilingType: layers or tasks, in the order in which they begin; or the raw records
                that both are computed from, ``abi.layer_map.TASK_TIME``.

        Raises:
            ZeError: NOT_READY: no inference has completed; INVALID_ENUMERATION: unknown type;
                INVALID_ARGUMENT: the layer map lacks some tasks.
        """
        query = hProfilingQuery
        try:
            data = query.data()
        except ZeError as error:
            query.log = str(error)
            raise
        query.log = ""
        if profilingType == _LAYERS:
            return data.layers
        return data.tasks if profilingType == _TASKS else data.records.tobytes()

    @checked
    def pfnDeviceGetProfilingDataProperties(
        self, hDevice: driver.ze_device_handle_t
    ) -> t.ze_device_profiling_data_properties_t:
        """Describe a device's profiling."""
        return t.ze_device_profiling_data_properties_t(driver.PROFILING_EXTENSION_VERSION)

    @checked
    def pfnProfilingLogGetString(self, hProfilingQuery: ze_graph_profiling_query_handle_t) -> str:
        """Return why a query's latest request for data failed; empty if it succeeded."""
        return hProfilingQuery.log


driver.extension_tables[driver.PROFILING_EXTENSION] = ze_graph_profiling_dditable_ext_t()
