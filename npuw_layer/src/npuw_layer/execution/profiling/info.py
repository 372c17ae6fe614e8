"""Profiling record of a node, as OpenVINO's requests return it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import ClassVar

from npuw_layer.backends.recording import LayerTime, ProgramRun


class Status(Enum):
    """Outcome of a node."""

    NOT_RUN = 0
    OPTIMIZED_OUT = 1
    EXECUTED = 2


@dataclass(frozen=True, slots=True)
class ProfilingInfo:
    """A node of an inference, with the names of ``openvino.ProfilingInfo``.

    Times are those of the simulated device, in whole microseconds, as in OpenVINO.
    """

    Status: ClassVar[type[Status]] = Status

    status: Status
    real_time: timedelta
    """Time from its start to its end."""
    cpu_time: timedelta
    """Busy time of all engines together."""
    node_name: str
    exec_type: str
    """Engine: "Shave" if SHAVEs took part, else "DPU" if the DPU did, else "DMA"."""
    node_type: str
    """Kind of the layer."""


def node_infos(run: ProgramRun) -> list[ProfilingInfo]:
    """Return the layers of a run; names begin with the run's labels, as in NPUW."""
    prefix = "".join(f"{label}: " for label in run.labels)
    return [_layer_info(prefix, layer) for layer in run.layers]


def statistic(name: str, nanoseconds: int) -> ProfilingInfo:
    """Return a statistic of whole inferences as a node."""
    time = _time(nanoseconds)
    return ProfilingInfo(Status.EXECUTED, time, time, name, name, name)


def _layer_info(prefix: str, layer: LayerTime) -> ProfilingInfo:
    engine = "Shave" if layer.sw_ns else "DPU" if layer.dpu_ns else "DMA"
    return ProfilingInfo(
        status=Status.EXECUTED if layer.ran else Status.OPTIMIZED_OUT,
        real_time=_time(layer.duration_ns),
        cpu_time=_time(layer.dpu_ns + layer.sw_ns + layer.dma_ns),
        node_name=prefix + layer.name,
        exec_type=engine,
        node_type=layer.kind,
    )


def _time(nanoseconds: int) -> timedelta:
    return timedelta(microseconds=nanoseconds // 1000)
