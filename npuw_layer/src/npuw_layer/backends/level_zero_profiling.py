"""Times of programs on the NPU: of their runs, and of their tasks.

The driver's profiling extension returns the times of a run. Since a schedule is static, the driver
computes the same times without a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from driver_layer import ze
from npuw_layer.backends.level_zero_memory import reported
from npuw_layer.backends.protocols import TaskSpan
from npuw_layer.backends.recording import LayerTime, is_recording, note
from npuw_layer.backends.release import release_with

_LAYERS = ze.ze_graph_profiling_type_t.ZE_GRAPH_PROFILING_LAYER_LEVEL
_ENGINES = {
    ze.ze_task_execute_type_t.ZE_TASK_EXECUTE_DMA: "DMA",
    ze.ze_task_execute_type_t.ZE_TASK_EXECUTE_DPU: "DPU",
    ze.ze_task_execute_type_t.ZE_TASK_EXECUTE_SW: "SHAVE",
}


def task_spans(graph: ze.ze_graph_handle_t) -> Sequence[TaskSpan]:
    """Return the times of a graph's tasks, which the first call computes.

    Raises:
        DeviceError: the blob has no layer map, or not all its tasks are in the map.
    """
    with reported("the timeline of a blob"):
        tasks = graph.profile.data().tasks
    return [
        TaskSpan(
            _ENGINES[task.exec_type],
            task.name,
            task.start_time_ns,
            task.start_time_ns + task.duration_ns,
        )
        for task in tasks
    ]


class RunTimes:
    """Times of the runs of one recorded program; ``query`` is part of the recording.

    Args:
        table: functions of the extension.
        graph: graph of the program.

    Raises:
        ZeError: the graph does not assign its tasks to layers.
    """

    def __init__(
        self, table: ze.ze_graph_profiling_dditable_ext_t, graph: ze.ze_graph_handle_t
    ) -> None:
        self._table = table
        pool = table.pfnProfilingPoolCreate(graph, 1)
        self.query = table.pfnProfilingQueryCreate(pool, 0)
        release_with(self, partial(_destroy, table, pool, self.query))

    def tell(self) -> None:
        """Report the last run to the current listener.

        Raises:
            DeviceError: the graph does not assign all tasks to layers.
        """
        if not is_recording():
            return
        with reported("profiling a blob"):
            found = self._table.pfnProfilingQueryGetData(self.query, _LAYERS)
        note([_layer_time(layer) for layer in found])


def _layer_time(layer: ze.ze_profiling_layer_info) -> LayerTime:
    return LayerTime(
        name=layer.name,
        kind=layer.layer_type,
        ran=layer.status is ze.ze_layer_status_t.ZE_LAYER_STATUS_EXECUTED,
        start_ns=layer.start_time_ns,
        duration_ns=layer.duration_ns,
        dpu_ns=layer.dpu_ns,
        sw_ns=layer.sw_ns,
        dma_ns=layer.dma_ns,
    )


def _destroy(
    table: ze.ze_graph_profiling_dditable_ext_t,
    pool: ze.ze_graph_profiling_pool_handle_t,
    query: ze.ze_graph_profiling_query_handle_t,
) -> None:
    table.pfnProfilingQueryDestroy(query)
    table.pfnProfilingPoolDestroy(pool)
