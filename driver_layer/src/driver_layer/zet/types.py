"""Types of metrics, with the specification's names.

Source: Level Zero tools specification 1.17, metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag


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


class zet_metric_query_pool_type_t(IntEnum):
    """Kinds of pools; both measure here."""

    ZET_METRIC_QUERY_POOL_TYPE_PERFORMANCE = 0
    ZET_METRIC_QUERY_POOL_TYPE_EXECUTION = 1


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


@dataclass(frozen=True, slots=True)
class zet_metric_query_pool_desc_t:
    """Descriptor of a pool of ``count`` queries."""

    type: zet_metric_query_pool_type_t
    count: int
