"""Metrics of a device, their groups and the activation of groups; types with the specified names.

Source: Level Zero tools specification 1.17; codes of the public NPU driver,
docs/reference/level_zero.md#metrics. Its groups are those of its firmware.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag

import numpy as np

from driver_layer import ze
from driver_layer.ze import errors
from driver_layer.ze.calls import Handle, checked
from driver_layer.ze.context import check_device


class zet_metric_type_t(IntEnum):
    """Kinds of metrics."""

    ZET_METRIC_TYPE_DURATION = 0
    ZET_METRIC_TYPE_EVENT = 1


class zet_value_type_t(IntEnum):
    """Types of a metric's values."""

    ZET_VALUE_TYPE_UINT64 = 1


class zet_metric_group_sampling_type_flags_t(IntFlag):
    """Ways to sample a group: by queries, or by time."""

    ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_EVENT_BASED = 1
    ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_TIME_BASED = 2


class zet_metric_group_calculation_type_t(IntEnum):
    """Values that are computed from raw data: each report's, or the maximum of all reports."""

    ZET_METRIC_GROUP_CALCULATION_TYPE_METRIC_VALUES = 0
    ZET_METRIC_GROUP_CALCULATION_TYPE_MAX_METRIC_VALUES = 1


@dataclass(frozen=True, slots=True)
class zet_metric_group_properties_t:
    """Properties of a group; one group of a domain can be active."""

    name: str
    description: str
    samplingType: zet_metric_group_sampling_type_flags_t
    domain: int
    metricCount: int


@dataclass(frozen=True, slots=True)
class zet_metric_properties_t:
    """Properties of a metric."""

    name: str
    description: str
    component: str
    tierNumber: int
    metricType: zet_metric_type_t
    resultType: zet_value_type_t
    resultUnits: str


@dataclass(frozen=True, slots=True)
class zet_typed_value_t:
    """A value of a metric."""

    type: zet_value_type_t
    value: int


_EVENT, _DURATION = zet_metric_type_t.ZET_METRIC_TYPE_EVENT, zet_metric_type_t(0)
_U64 = zet_value_type_t.ZET_VALUE_TYPE_UINT64
_MAXIMA = zet_metric_group_calculation_type_t.ZET_METRIC_GROUP_CALCULATION_TYPE_MAX_METRIC_VALUES
_METRICS = (
    ("Inferences", "Inferences that ended without a fault", _EVENT, "count"),
    ("Faults", "Inferences that failed", _EVENT, "count"),
    ("ActiveTime", "Time in which an inference ran", _DURATION, "ns"),
    ("Elapsed", "Time of the device", _DURATION, "ticks"),
)


class zet_metric_handle_t(Handle):
    """A metric."""

    def __init__(self, properties: zet_metric_properties_t) -> None:
        super().__init__()
        self.properties = properties


class zet_metric_group_handle_t(Handle):
    """The metrics of a device; ``owner`` is the context that activated the group."""

    def __init__(self, device: ze.ze_device_handle_t) -> None:
        super().__init__()
        self.device = device
        self.owner: ze.ze_context_handle_t | None = None
        self.metrics = [
            zet_metric_handle_t(zet_metric_properties_t(name, about, "NPU", 0, kind, _U64, unit))
            for name, about, kind, unit in _METRICS
        ]

    @property
    def active(self) -> bool:
        """True while a living context has the group activated."""
        return self.owner is not None and self.owner.alive

    def read(self) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """Return the present values of the metrics, which only grow."""
        npu = self.device.npu
        counters = npu.counters
        values = (counters.inferences, counters.faults, counters.active_until_now())
        return np.array([*values, npu.timestamp()], "<u8")


_lock = threading.Lock()
_groups: dict[ze.ze_device_handle_t, zet_metric_group_handle_t] = {}


@checked
def zetMetricGroupGet(hDevice: ze.ze_device_handle_t) -> list[zet_metric_group_handle_t]:
    """Return the groups of metrics: one.

    Raises:
        ZeError: UNINITIALIZED: ZET_ENABLE_METRICS=1 is not in the environment.
    """
    if os.environ.get("ZET_ENABLE_METRICS") != "1":
        raise errors.uninitialized("metrics are disabled; set ZET_ENABLE_METRICS=1")
    with _lock:
        if hDevice not in _groups:
            _groups[hDevice] = zet_metric_group_handle_t(hDevice)
        return [_groups[hDevice]]


@checked
def zetMetricGroupGetProperties(
    hMetricGroup: zet_metric_group_handle_t,
) -> zet_metric_group_properties_t:
    """Describe a group."""
    sampled = zet_metric_group_sampling_type_flags_t
    return zet_metric_group_properties_t(
        name="Activity",
        description="Work of the engines",
        samplingType=sampled.ZET_METRIC_GROUP_SAMPLING_TYPE_FLAG_EVENT_BASED,
        domain=0,
        metricCount=len(hMetricGroup.metrics),
    )


@checked
def zetMetricGet(hMetricGroup: zet_metric_group_handle_t) -> list[zet_metric_handle_t]:
    """Return the metrics of a group, in the order of its raw data."""
    return list(hMetricGroup.metrics)


@checked
def zetMetricGetProperties(hMetric: zet_metric_handle_t) -> zet_metric_properties_t:
    """Describe a metric."""
    return hMetric.properties


@checked
def zetMetricGroupCalculateMetricValues(
    hMetricGroup: zet_metric_group_handle_t,
    type: zet_metric_group_calculation_type_t,
    pRawData: bytes,
) -> list[zet_typed_value_t]:
    """Return the values of the metrics in raw data, report by report, or their maxima.

    Raises:
        ZeError: INVALID_SIZE: the data does not consist of complete reports.
    """
    raw = bytes(pRawData)
    count = len(hMetricGroup.metrics)
    if not raw or len(raw) % (8 * count):
        raise errors.invalid_size(f"{len(raw)} bytes are no reports of {8 * count} bytes")
    reports = np.frombuffer(raw, "<u8").reshape(-1, count)
    if type == _MAXIMA:
        reports = reports.max(axis=0, keepdims=True)
    return [zet_typed_value_t(_U64, int(value)) for value in reports.ravel()]


@checked
def zetContextActivateMetricGroups(
    hContext: ze.ze_context_handle_t,
    hDevice: ze.ze_device_handle_t,
    phMetricGroups: Sequence[zet_metric_group_handle_t] = (),
) -> None:
    """Activate groups, and deactivate all others of the context.

    Raises:
        ZeError: INVALID_ARGUMENT: a group is of another device, or another context has activated
            it, or the device is not the context's.
    """
    check_device(hContext, hDevice)
    with _lock:
        for group in _groups.values():
            if group.owner is hContext:
                group.owner = None
        for group in phMetricGroups:
            if group.device is not hDevice or (group.active and group.owner is not hContext):
                message = "the group is of another device, or active in another context"
                raise errors.invalid_argument(message)
            group.owner = hContext
