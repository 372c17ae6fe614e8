"""Pools and queries: what a recorded inference leaves of when its tasks ran.

Source: NPU profiling data extension 1.0 (fact sheet elf_driver §5.2); as it says nothing of a query
that was not run, NOT_READY is that of Level Zero's own queries of timestamps.
"""

from __future__ import annotations

from collections.abc import Callable

from driver_layer.ze.graph import ze_graph_handle_t
from driver_layer.ze.handles import Handle, check
from driver_layer.ze.profiling_data import ProfilingData
from driver_layer.ze.result import failed, ze_result_t


class ze_graph_profiling_pool_handle_t(Handle):
    """Room for what inferences of a graph leave.

    Args:
        graph: whose inferences.
        count: of queries that find room.

    Raises:
        ZeError: INVALID_SIZE: for none; UNSUPPORTED_FEATURE: the graph does not say whose its tasks
            are; INVALID_ARGUMENT: what it says is malformed.
    """

    def __init__(self, graph: ze_graph_handle_t, count: int) -> None:
        super().__init__()
        if count <= 0:
            raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_SIZE, f"a pool of {count} queries")
        self.graph = graph
        self.count = count
        self.queries: dict[int, ze_graph_profiling_query_handle_t] = {}
        self.profile = graph.profile


class ze_graph_profiling_query_handle_t(Handle):
    """What the last run of the inferences that were recorded with it left.

    Args:
        pool: where it has its place.
        index: the place.
    """

    def __init__(self, pool: ze_graph_profiling_pool_handle_t, index: int) -> None:
        super().__init__()
        self.pool = pool
        self.index = index
        self.filled = False
        """Whether an inference has run to its end since the last one began."""
        self.log = ""
        """Why data could not be given last."""

    def profile(self, run: Callable[[], object]) -> None:
        """Run an inference, and take note when it has come to its end."""
        self.filled = False
        run()
        self.filled = True

    def data(self) -> ProfilingData:
        """Give what is there.

        Raises:
            ZeError: NOT_READY: nothing was run with it, or is not done, or failed; else as that of
                its pool.
        """
        if not self.filled:
            message = f"no inference has run to its end with query {self.index}"
            raise failed(ze_result_t.ZE_RESULT_NOT_READY, message)
        check(self.pool, ze_graph_profiling_pool_handle_t)
        return self.pool.profile.data()
