"""Metric queries: the growth of a group's metrics between two commands of a list.

Source: Level Zero tools specification 1.17; codes of the public NPU driver,
docs/reference/level_zero.md#metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from driver_layer import ze
from driver_layer.ze import errors
from driver_layer.ze.calls import Handle, checked
from driver_layer.ze.command_list import Events, nothing
from driver_layer.ze.context import check_device
from driver_layer.ze.result import ze_result_t
from driver_layer.zet.metric_groups import zet_metric_group_handle_t


class zet_metric_query_pool_type_t(IntEnum):
    """Kinds of pools; both measure here."""

    ZET_METRIC_QUERY_POOL_TYPE_PERFORMANCE = 0
    ZET_METRIC_QUERY_POOL_TYPE_EXECUTION = 1


@dataclass(frozen=True, slots=True)
class zet_metric_query_pool_desc_t:
    """Descriptor of a pool of ``count`` queries."""

    type: zet_metric_query_pool_type_t
    count: int


class zet_metric_query_pool_handle_t(Handle):
    """A pool of queries for one group."""

    def __init__(self, group: zet_metric_group_handle_t, count: int) -> None:
        super().__init__()
        self.group = group
        self.count = count
        self.queries: dict[int, zet_metric_query_handle_t] = {}


class zet_metric_query_handle_t(Handle):
    """A query; ``data`` has the growth of the metrics, None before the query's end ran."""

    def __init__(self, pool: zet_metric_query_pool_handle_t, index: int) -> None:
        super().__init__()
        self.pool = pool
        self.index = index
        self.data: bytes | None = None
        self._begin = pool.group.read()

    def begin(self) -> None:
        """Store the metrics' values."""
        self.data = None
        self._begin = self.pool.group.read()

    def end(self) -> None:
        """Compute the growth of the metrics since the begin."""
        self.data = (self.pool.group.read() - self._begin).tobytes()


@checked
def zetMetricQueryPoolCreate(
    hContext: ze.ze_context_handle_t,
    hDevice: ze.ze_device_handle_t,
    hMetricGroup: zet_metric_group_handle_t,
    desc: zet_metric_query_pool_desc_t,
) -> zet_metric_query_pool_handle_t:
    """Create a pool of queries.

    Raises:
        ZeError: INVALID_SIZE: the count is not positive; NOT_READY: the group is not active;
            INVALID_ARGUMENT: the device is not the context's or the group's.
    """
    check_device(hContext, hDevice)
    if desc.count <= 0:
        raise errors.invalid_size(f"count {desc.count}: a pool must have at least one query")
    if hMetricGroup.device is not hDevice:
        raise errors.invalid_argument("the metric group belongs to another device")
    _check_active(hMetricGroup, ze_result_t.ZE_RESULT_NOT_READY)
    return zet_metric_query_pool_handle_t(hMetricGroup, desc.count)


@checked
def zetMetricQueryPoolDestroy(hMetricQueryPool: zet_metric_query_pool_handle_t) -> None:
    """Destroy a pool.

    Raises:
        ZeError: HANDLE_OBJECT_IN_USE: the pool still has queries.
    """
    if hMetricQueryPool.queries:
        message = f"the pool still has {len(hMetricQueryPool.queries)} queries; destroy them first"
        raise errors.handle_object_in_use(message)
    hMetricQueryPool.alive = False


@checked
def zetMetricQueryCreate(
    hMetricQueryPool: zet_metric_query_pool_handle_t, index: int
) -> zet_metric_query_handle_t:
    """Create a query at an index of a pool.

    Raises:
        ZeError: DEPENDENCY_UNAVAILABLE: the group is not active; INVALID_ARGUMENT: the index is out
            of range; HANDLE_OBJECT_IN_USE: the index is in use.
    """
    pool = hMetricQueryPool
    _check_active(pool.group, ze_result_t.ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE)
    if not 0 <= index < pool.count:
        message = f"index {index} is out of range of a pool of {pool.count} queries"
        raise errors.invalid_argument(message)
    if index in pool.queries:
        raise errors.handle_object_in_use(f"index {index} of the pool is in use")
    query = pool.queries[index] = zet_metric_query_handle_t(pool, index)
    return query


@checked
def zetMetricQueryDestroy(hMetricQuery: zet_metric_query_handle_t) -> None:
    """Destroy a query; commands that were recorded with it still run."""
    hMetricQuery.pool.queries.pop(hMetricQuery.index, None)
    hMetricQuery.alive = False


@checked
def zetMetricQueryReset(hMetricQuery: zet_metric_query_handle_t) -> None:
    """Discard the data of a query."""
    hMetricQuery.data = None


@checked
def zetMetricQueryGetData(hMetricQuery: zet_metric_query_handle_t) -> bytes:
    """Return the raw data of a query: one report, a u64 for each metric.

    Raises:
        ZeError: NOT_READY: the query's end has not run since its begin.
    """
    if hMetricQuery.data is None:
        raise errors.not_ready("the query has no data; wait for the list with its end")
    return hMetricQuery.data


@checked
def zetCommandListAppendMetricQueryBegin(
    hCommandList: ze.ze_command_list_handle_t, hMetricQuery: zet_metric_query_handle_t
) -> None:
    """Record the begin of a query.

    Raises:
        ZeError: DEPENDENCY_UNAVAILABLE: the group is not active; INVALID_ARGUMENT: the list is
            closed, or of another device.
    """
    _check_usable(hCommandList, hMetricQuery)
    hCommandList.append(hMetricQuery.begin)


@checked
def zetCommandListAppendMetricQueryEnd(
    hCommandList: ze.ze_command_list_handle_t,
    hMetricQuery: zet_metric_query_handle_t,
    hSignalEvent: ze.ze_event_handle_t | None = None,
    phWaitEvents: Events = (),
) -> None:
    """Record the end of a query; raises as zetCommandListAppendMetricQueryBegin."""
    _check_usable(hCommandList, hMetricQuery)
    hCommandList.append(hMetricQuery.end, hSignalEvent, phWaitEvents)


@checked
def zetCommandListAppendMetricMemoryBarrier(hCommandList: ze.ze_command_list_handle_t) -> None:
    """Record a barrier for the data of metrics; commands run in order anyway."""
    hCommandList.append(nothing)


def _check_usable(
    command_list: ze.ze_command_list_handle_t, query: zet_metric_query_handle_t
) -> None:
    if command_list.context.device is not query.pool.group.device:
        raise errors.invalid_argument("command list and metric query belong to different devices")
    _check_active(query.pool.group, ze_result_t.ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE)


def _check_active(group: zet_metric_group_handle_t, code: ze_result_t) -> None:
    if not group.active:
        raise errors.failed(code, "the metric group is not active; activate it in a context first")
