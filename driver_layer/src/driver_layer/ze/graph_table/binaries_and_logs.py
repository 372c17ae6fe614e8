"""Native binaries and build logs of graphs.

Source: docs/reference/level_zero.md#graph-extension.
"""

from __future__ import annotations

from driver_layer.ze import errors
from driver_layer.ze.calls import checked
from driver_layer.ze.graph import ze_graph_handle_t
from driver_layer.ze.graph_build_log import ze_graph_build_log_handle_t


class BinariesAndLogs:
    """Functions that return what a creation made, or why it failed."""

    @checked
    def pfnGetNativeBinary(self, hGraph: ze_graph_handle_t) -> bytes:
        """Return a copy of the blob."""
        return bytes(hGraph.binary)

    @checked
    def pfnGetNativeBinary2(self, hGraph: ze_graph_handle_t) -> memoryview:
        """Return a read-only view of the blob, valid until the graph is destroyed."""
        return hGraph.binary.toreadonly()

    @checked
    def pfnBuildLogGetString(self, hGraph: ze_graph_handle_t | None = None) -> str:
        """Return the log of this thread's latest creation or error, whichever graph is given."""
        return errors.latest_log()

    @checked
    def pfnBuildLogGetString2(self, hGraphBuildLog: ze_graph_build_log_handle_t) -> str:
        """Return the text of a build log."""
        return hGraphBuildLog.text

    @checked
    def pfnBuildLogDestroy(self, hGraphBuildLog: ze_graph_build_log_handle_t) -> None:
        """Destroy a build log."""
        hGraphBuildLog.alive = False
