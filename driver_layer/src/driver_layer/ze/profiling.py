"""Pools and queries: what a recorded inference leaves of when its tasks ran.

The times are those of the simulated device (``npu.timeline``), so that they do not depend on the
host, and all inferences of a graph take the same. They count from the begin of the inference.

Source: NPU profiling data extension 1.0 (fact sheet elf_driver §5.2); as it says nothing of a query
that was not run, NOT_READY is that of Level Zero's own queries of timestamps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from driver_layer.abi.layer_map import (
    QUEUE_KINDS,
    SECTION_NAME,
    LayerMap,
    LayerMapError,
    decode_layer_map,
)
from driver_layer.abi.layout import RecordArray
from driver_layer.errors import DriverError
from driver_layer.loader.read import Blob, read_blob
from driver_layer.npu.timeline import predict
from driver_layer.npu.timeline.records import task_records
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
        self._lock = threading.Lock()
        self._data: ProfilingData | None = None
        self._blob = read_blob(graph.binary)
        self._names = _names(self._blob)

    def data(self) -> ProfilingData:
        """What each inference of the graph leaves; found when it is first asked for.

        Raises:
            ZeError: INVALID_ARGUMENT: a task belongs to no layer; UNKNOWN: it cannot be predicted.
        """
        with self._lock:
            if self._data is None:
                platform = self.graph.context.device.platform
                try:
                    records = task_records(predict(self._blob, platform))
                except DriverError as error:
                    raise failed(ze_result_t.ZE_RESULT_ERROR_UNKNOWN, str(error)) from error
                _check_owned(records, self._names)
                self._data = ProfilingData(records, self._names, platform)
            return self._data


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
        return self.pool.data()


def _names(blob: Blob) -> LayerMap:
    for section in blob.sections:
        if section.name == SECTION_NAME:
            try:
                return decode_layer_map(section.data)
            except LayerMapError as error:
                message = f"section {SECTION_NAME}: {error}"
                code = ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT
                raise failed(code, message) from error
    message = f"the blob has no section {SECTION_NAME}, which says whose its tasks are"
    raise failed(ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, message)


def _check_owned(records: RecordArray, names: LayerMap) -> None:
    """See that each task belongs to a layer."""
    known = {(QUEUE_KINDS.index(k), number): len(own) for (k, number), own in names.tasks.items()}
    for kind, number in {(int(r["kind"]), int(r["number"])) for r in records}:
        of_queue = (records["kind"] == kind) & (records["number"] == number)
        if records["index"][of_queue].max() >= known.get((kind, number), 0):
            queue = f"{QUEUE_KINDS[kind]} {number}"
            message = f"section {SECTION_NAME}: some tasks of {queue} are of no layer"
            raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)
