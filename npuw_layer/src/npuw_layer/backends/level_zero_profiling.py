"""Times of program runs on the NPU, from the driver's profiling extension."""

from __future__ import annotations

from functools import partial

from driver_layer import ze
from npuw_layer.backends.level_zero_memory import reported
from npuw_layer.backends.recording import LayerTime, is_recording, note
from npuw_layer.backends.release import release_with

_LAYERS = ze.ze_graph_profiling_type_t.ZE_GRAPH_PROFILING_LAYER_LEVEL


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
