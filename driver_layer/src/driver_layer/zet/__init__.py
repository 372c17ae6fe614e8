"""Level Zero's tools interface in Python, on the simulated NPU: metrics and their queries.

Functions have the specification's names; values come from the counters of the simulated device.
Metric streamers are not supported.
"""

from driver_layer.zet.metric_groups import zet_metric_group_handle_t as zet_metric_group_handle_t
from driver_layer.zet.metric_groups import zet_metric_handle_t as zet_metric_handle_t
from driver_layer.zet.metric_groups import (
    zetContextActivateMetricGroups as zetContextActivateMetricGroups,
)
from driver_layer.zet.metric_groups import zetMetricGet as zetMetricGet
from driver_layer.zet.metric_groups import zetMetricGetProperties as zetMetricGetProperties
from driver_layer.zet.metric_groups import (
    zetMetricGroupCalculateMetricValues as zetMetricGroupCalculateMetricValues,
)
from driver_layer.zet.metric_groups import zetMetricGroupGet as zetMetricGroupGet
from driver_layer.zet.metric_groups import (
    zetMetricGroupGetProperties as zetMetricGroupGetProperties,
)
from driver_layer.zet.metric_queries import zet_metric_query_handle_t as zet_metric_query_handle_t
from driver_layer.zet.metric_queries import (
    zet_metric_query_pool_handle_t as zet_metric_query_pool_handle_t,
)
from driver_layer.zet.metric_queries import (
    zetCommandListAppendMetricMemoryBarrier as zetCommandListAppendMetricMemoryBarrier,
)
from driver_layer.zet.metric_queries import (
    zetCommandListAppendMetricQueryBegin as zetCommandListAppendMetricQueryBegin,
)
from driver_layer.zet.metric_queries import (
    zetCommandListAppendMetricQueryEnd as zetCommandListAppendMetricQueryEnd,
)
from driver_layer.zet.metric_queries import zetMetricQueryCreate as zetMetricQueryCreate
from driver_layer.zet.metric_queries import zetMetricQueryDestroy as zetMetricQueryDestroy
from driver_layer.zet.metric_queries import zetMetricQueryGetData as zetMetricQueryGetData
from driver_layer.zet.metric_queries import zetMetricQueryPoolCreate as zetMetricQueryPoolCreate
from driver_layer.zet.metric_queries import zetMetricQueryPoolDestroy as zetMetricQueryPoolDestroy
from driver_layer.zet.metric_queries import zetMetricQueryReset as zetMetricQueryReset
from driver_layer.zet.types import (
    zet_metric_group_calculation_type_t as zet_metric_group_calculation_type_t,
)
from driver_layer.zet.types import zet_metric_group_properties_t as zet_metric_group_properties_t
from driver_layer.zet.types import (
    zet_metric_group_sampling_type_flags_t as zet_metric_group_sampling_type_flags_t,
)
from driver_layer.zet.types import zet_metric_properties_t as zet_metric_properties_t
from driver_layer.zet.types import zet_metric_query_pool_desc_t as zet_metric_query_pool_desc_t
from driver_layer.zet.types import zet_metric_query_pool_type_t as zet_metric_query_pool_type_t
from driver_layer.zet.types import zet_metric_type_t as zet_metric_type_t
from driver_layer.zet.types import zet_typed_value_t as zet_typed_value_t
from driver_layer.zet.types import zet_value_type_t as zet_value_type_t
