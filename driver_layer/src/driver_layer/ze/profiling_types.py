"""Enumerations and records of the profiling extension, by the public header's names.

Source: NPU profiling data extension 1.0 (fact sheet elf_driver §5.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class ze_graph_profiling_type_t(IntEnum):
    """What is asked of a query."""

    ZE_GRAPH_PROFILING_LAYER_LEVEL = 1
    ZE_GRAPH_PROFILING_TASK_LEVEL = 2
    ZE_GRAPH_PROFILING_RAW = 4


class ze_layer_status_t(IntEnum):
    """What became of a layer."""

    ZE_LAYER_STATUS_NOT_RUN = 1
    ZE_LAYER_STATUS_OPTIMIZED_OUT = 2
    ZE_LAYER_STATUS_EXECUTED = 3


class ze_task_execute_type_t(IntEnum):
    """What executed a task."""

    ZE_TASK_EXECUTE_NONE = 0
    ZE_TASK_EXECUTE_DPU = 1
    ZE_TASK_EXECUTE_SW = 2
    ZE_TASK_EXECUTE_DMA = 3


@dataclass(frozen=True, slots=True)
class ze_profiling_layer_info:
    """A layer; nanoseconds of the simulated device, since the inference began."""

    name: str
    layer_type: str
    status: ze_layer_status_t
    start_time_ns: int
    duration_ns: int
    """From the begin of its first task to the end of its last one; layers overlap."""
    layer_id: int
    """Its place in the program."""
    dpu_ns: int
    sw_ns: int
    dma_ns: int
    """Sums of its tasks on DPU, SHAVE and DMA; they overlap, too."""


@dataclass(frozen=True, slots=True)
class ze_profiling_task_info:
    """A task; nanoseconds as of a layer, cycles of what executes it."""

    name: str
    """Of its layer."""
    layer_type: str
    exec_type: ze_task_execute_type_t
    start_time_ns: int
    duration_ns: int
    active_cycles: int
    """What it takes if it has the device for itself."""
    stall_cycles: int
    """What it takes besides, as transfers share the bandwidth of DDR."""
    task_id: int
    """Its place in its queue."""
    parent_layer_id: int


@dataclass(frozen=True, slots=True)
class ze_device_profiling_data_properties_t:
    """What a device's profiling is like."""

    extensionVersion: int
