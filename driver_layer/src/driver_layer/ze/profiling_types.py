"""Enumerations and records of the profiling extension, with the public header's names.

Source: NPU profiling data extension 1.0 (docs/reference/level_zero.md#profiling-extension).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


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
