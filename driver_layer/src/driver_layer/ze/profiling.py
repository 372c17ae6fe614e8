"""Profiling pools and queries, which collect the times of a recorded inference's tasks.

Source: NPU profiling data extension 1.0 (docs/reference/level_zero.md#profiling-extension); it does
not define the result of a query without a run, so NOT_READY is taken from Level Zero's timestamp
queries.
"""

from __future__ import annotations

from collections.abc import Callable

from driver_layer.ze import errors
from driver_layer.ze.graph import ze_graph_handle_t
from driver_layer.ze.handles import Handle
from driver_layer.ze.profiling_data import ProfilingData


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

    def data(self) -> ProfilingData:
        """Return the profiling data.

        Raises:
            ZeError: NOT_READY: no inference ran with the query, or it is running, or failed; else
                as ``GraphProfile.data``.
        """
        if not self.filled:
            raise errors.not_ready(f"no inference with query {self.index} has completed")
        return self.pool.profile.data()
