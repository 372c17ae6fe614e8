"""Build logs of graphs.

Source: docs/reference/level_zero.md#graph-extension.
"""

from __future__ import annotations

from driver_layer.errors import ZeError
from driver_layer.ze.context import ze_context_handle_t
from driver_layer.ze.handles import Handle


class ze_graph_build_log_handle_t(Handle):
    """Log of the creation of one graph: what the cache did, or the reason for a failure."""

    def __init__(self, context: ze_context_handle_t) -> None:
        super().__init__()
        self.context = context
        self.text = ""


class GraphCreationError(ZeError):
    """Failure of pfnCreate3.

    Args:
        error: the failure.
        log: the build log, a handle that C's function writes in this case, too.
    """

    def __init__(self, error: ZeError, log: ze_graph_build_log_handle_t) -> None:
        super().__init__(error.code, error.message)
        self.log = log
