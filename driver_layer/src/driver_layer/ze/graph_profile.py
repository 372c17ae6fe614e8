"""Times of a graph's tasks, and the layers that the tasks belong to.

The times are those of the simulated device (``npu.timeline``), so they do not depend on the host
and are equal for all inferences of a graph. They count from the start of the inference.
"""

from __future__ import annotations

import threading

from driver_layer.abi.layer_map import (
    QUEUE_KINDS,
    SECTION_NAME,
    LayerMap,
    LayerMapError,
    decode_layer_map,
)
from driver_layer.abi.layout import RecordArray
from driver_layer.abi.platforms import Platform
from driver_layer.errors import DriverError
from driver_layer.loader.read import Blob
from driver_layer.npu.timeline import predict
from driver_layer.npu.timeline.records import task_records
from driver_layer.ze import errors
from driver_layer.ze.profiling_data import ProfilingData
from driver_layer.ze.result import ze_result_t


class GraphProfile:
    """Profiling data of a graph, equal for each of its inferences.

    Args:
        blob: the graph's blob.
        platform: the device.

    Raises:
        ZeError: UNSUPPORTED_FEATURE: the blob has no layer map; INVALID_ARGUMENT: its layer map is
            malformed.
    """

    def __init__(self, blob: Blob, platform: Platform) -> None:
        self._platform = platform
        self._blob = blob
        self._names = _names(self._blob)
        self._lock = threading.Lock()
        self._data: ProfilingData | None = None

    def data(self) -> ProfilingData:
        """Return the data, which the first call computes.

        Raises:
            ZeError: INVALID_ARGUMENT: a task belongs to no layer; UNKNOWN: the prediction fails.
        """
        with self._lock:
            if self._data is None:
                with errors.failing_as({DriverError: ze_result_t.ZE_RESULT_ERROR_UNKNOWN}):
                    records = task_records(predict(self._blob, self._platform))
                _check_owned(records, self._names)
                self._data = ProfilingData(records, self._names, self._platform)
            return self._data


def has_layer_map(blob: Blob) -> bool:
    """Return whether a blob has a layer map, so that its graph can be profiled."""
    return any(section.name == SECTION_NAME for section in blob.sections)


def _names(blob: Blob) -> LayerMap:
    for section in blob.sections:
        if section.name == SECTION_NAME:
            try:
                return decode_layer_map(section.data)
            except LayerMapError as error:
                message = f"section {SECTION_NAME}: {error}"
                raise errors.invalid_argument(message) from error
    message = f"the blob has no layer map (section {SECTION_NAME}), so it cannot be profiled"
    raise errors.unsupported_feature(message)


def _check_owned(records: RecordArray, names: LayerMap) -> None:
    """Check that each task belongs to a layer."""
    known = {(QUEUE_KINDS.index(k), number): len(own) for (k, number), own in names.tasks.items()}
    for kind, number in {(int(r["kind"]), int(r["number"])) for r in records}:
        of_queue = (records["kind"] == kind) & (records["number"] == number)
        if records["index"][of_queue].max() >= known.get((kind, number), 0):
            queue = f"{QUEUE_KINDS[kind]} {number}"
            message = f"section {SECTION_NAME}: some tasks of {queue} belong to no layer"
            raise errors.invalid_argument(message)
