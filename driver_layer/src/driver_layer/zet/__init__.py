"""Level Zero's tools interface in Python, on the simulated NPU: metrics and their queries.

Functions have the specification's names; values come from the counters of the simulated device.
The interface has the names that begin with ``zet``. Metric streamers are not supported.
"""

from .metric_groups import *
from .metric_queries import *
