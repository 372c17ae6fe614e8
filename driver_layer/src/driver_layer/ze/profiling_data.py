"""Times of a graph's tasks, and the layers that the tasks belong to.

The times are those of the simulated device (``npu.timeline``), so they do not depend on the host
and are equal for all inferences of a graph. They count from the start of the inference. The types
of the profiling extension have the public header's names.

Source: NPU profiling data extension 1.0 (docs/reference/level_zero.md#profiling-extension).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from driver_layer.abi.layer_map import QUEUE_KINDS, SECTION_NAME, LayerMap, LayerMapError
from driver_layer.abi.layout import RecordArray
from driver_layer.abi.platforms import Platform
from driver_layer.errors import DriverError
from driver_layer.loader.ops import read_layer_map
from driver_layer.loader.read import Blob
from driver_layer.npu.timeline import predict
from driver_layer.npu.timeline.records import task_records
from driver_layer.ze import errors
from driver_layer.ze.result import ze_result_t


class ze_graph_profiling_type_t(IntEnum):
    """Types of data that a query returns."""

    ZE_GRAPH_PROFILING_LAYER_LEVEL = 1
    ZE_GRAPH_PROFILING_TASK_LEVEL = 2
    ZE_GRAPH_PROFILING_RAW = 4


class ze_layer_status_t(IntEnum):
    """Status of a layer after an inference."""

    ZE_LAYER_STATUS_NOT_RUN = 1
    ZE_LAYER_STATUS_OPTIMIZED_OUT = 2
    ZE_LAYER_STATUS_EXECUTED = 3


class ze_task_execute_type_t(IntEnum):
    """Unit that executed a task."""

    ZE_TASK_EXECUTE_NONE = 0
    ZE_TASK_EXECUTE_DPU = 1
    ZE_TASK_EXECUTE_SW = 2
    ZE_TASK_EXECUTE_DMA = 3


@dataclass(frozen=True, slots=True)
class ze_profiling_layer_info:
    """A layer; times are nanoseconds of the simulated device since the start of the inference."""

    name: str
    layer_type: str
    status: ze_layer_status_t
    start_time_ns: int
    duration_ns: int
    """Time from the begin of the first task to the end of the last one; layers overlap."""
    layer_id: int
    """Index in the program."""
    dpu_ns: int
    sw_ns: int
    dma_ns: int
    """Sums of the durations of the tasks on DPU, SHAVE and DMA; tasks overlap, too."""


@dataclass(frozen=True, slots=True)
class ze_profiling_task_info:
    """A task; times as those of a layer, cycles of the unit that executes the task."""

    name: str
    """Name of the task's layer."""
    layer_type: str
    exec_type: ze_task_execute_type_t
    start_time_ns: int
    duration_ns: int
    active_cycles: int
    """Cycles that the task takes without contention."""
    stall_cycles: int
    """Additional cycles, as transfers share the DDR bandwidth."""
    task_id: int
    """Index in the task's queue."""
    parent_layer_id: int


@dataclass(frozen=True, slots=True)
class ze_device_profiling_data_properties_t:
    """Properties of a device's profiling."""

    extensionVersion: int


_DMA, _DPU, _SW = (
    ze_task_execute_type_t.ZE_TASK_EXECUTE_DMA,
    ze_task_execute_type_t.ZE_TASK_EXECUTE_DPU,
    ze_task_execute_type_t.ZE_TASK_EXECUTE_SW,
)
_ENGINES = np.array([{"dpu": _DPU, "shave": _SW}.get(kind, _DMA) for kind in QUEUE_KINDS])
"""Unit that executes the tasks of a queue, by the number of the queue's kind."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ProfilingData:
    """Profiling data of one inference.

    Attributes:
        records: a TASK_TIME record for each task.
        names: layer map that has all tasks.
        platform: the device.
    """

    records: RecordArray
    names: LayerMap
    platform: Platform

    @cached_property
    def layers(self) -> tuple[ze_profiling_layer_info, ...]:
        """Layers in the order in which they begin; those without tasks come last."""
        count = len(self.names.layers)
        owners, begins, ends = self._owners(), self._times("begin_ns"), self._times("end_ns")
        first = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(first, owners, begins)
        last = np.zeros(count, np.int64)
        np.maximum.at(last, owners, ends)
        busy = {engine: np.zeros(count, np.int64) for engine in (_DPU, _SW, _DMA)}
        for engine, sums in busy.items():
            own = _ENGINES[self.records["kind"]] == engine
            np.add.at(sums, owners[own], (ends - begins)[own])
        runs = np.bincount(owners, minlength=count) > 0
        order = np.argsort(first, kind="stable").tolist()
        return tuple(self._layer(number, runs, first, last, busy) for number in order)

    @cached_property
    def tasks(self) -> tuple[ze_profiling_task_info, ...]:
        """Tasks in the order in which they begin."""
        mhz = {_DPU: self.platform.dpu_mhz}
        order = np.argsort(self.records["begin_ns"], kind="stable")
        tasks: list[ze_profiling_task_info] = []
        for record, owner in zip(self.records[order], self._owners()[order], strict=True):
            engine = ze_task_execute_type_t(_ENGINES[record["kind"]])
            clock = mhz.get(engine, self.platform.cmx_mhz)
            duration = int(record["end_ns"] - record["begin_ns"])
            alone = min(int(record["alone_ns"]), duration)
            layer = self.names.layers[int(owner)]
            tasks.append(
                ze_profiling_task_info(
                    name=layer.name,
                    layer_type=layer.kind,
                    exec_type=engine,
                    start_time_ns=int(record["begin_ns"]),
                    duration_ns=duration,
                    active_cycles=alone * clock // 1000,
                    stall_cycles=(duration - alone) * clock // 1000,
                    task_id=int(record["index"]),
                    parent_layer_id=int(owner),
                )
            )
        return tuple(tasks)

    def _layer(
        self,
        number: int,
        runs: npt.NDArray[np.bool_],
        first: Numbers,
        last: Numbers,
        busy: Mapping[ze_task_execute_type_t, Numbers],
    ) -> ze_profiling_layer_info:
        layer, ran = self.names.layers[number], bool(runs[number])
        status = ze_layer_status_t
        return ze_profiling_layer_info(
            name=layer.name,
            layer_type=layer.kind,
            status=status.ZE_LAYER_STATUS_EXECUTED if ran else status.ZE_LAYER_STATUS_OPTIMIZED_OUT,
            start_time_ns=int(first[number]) if ran else 0,
            duration_ns=int(last[number] - first[number]) if ran else 0,
            layer_id=number,
            dpu_ns=int(busy[_DPU][number]),
            sw_ns=int(busy[_SW][number]),
            dma_ns=int(busy[_DMA][number]),
        )

    def _times(self, field: str) -> Numbers:
        return self.records[field].astype(np.int64)

    def _owners(self) -> Numbers:
        """Return the layer number of each task."""
        owners = np.zeros(len(self.records), np.int64)
        for (kind, number), layers in self.names.tasks.items():
            code = QUEUE_KINDS.index(kind)
            own = (self.records["kind"] == code) & (self.records["number"] == number)
            owners[own] = layers[self.records["index"][own]]
        return owners


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
    try:
        names = read_layer_map(blob)
    except LayerMapError as error:
        raise errors.invalid_argument(f"section {SECTION_NAME}: {error}") from error
    if names is None:
        message = f"the blob has no layer map (section {SECTION_NAME}), so it cannot be profiled"
        raise errors.unsupported_feature(message)
    return names


def _check_owned(records: RecordArray, names: LayerMap) -> None:
    """Check that each task belongs to a layer."""
    known = {(QUEUE_KINDS.index(k), number): len(own) for (k, number), own in names.tasks.items()}
    for kind, number in {(int(r["kind"]), int(r["number"])) for r in records}:
        of_queue = (records["kind"] == kind) & (records["number"] == number)
        if records["index"][of_queue].max() >= known.get((kind, number), 0):
            queue = f"{QUEUE_KINDS[kind]} {number}"
            message = f"section {SECTION_NAME}: some tasks of {queue} belong to no layer"
            raise errors.invalid_argument(message)
