"""Functions of the public driver that no header has; its own tests ask for them by name.

Source: docs/reference/level_zero.md#private-functions.
"""

from __future__ import annotations

from driver_layer.ze.calls import checked
from driver_layer.ze.context import ze_context_handle_t
from driver_layer.ze.driver import PRIVATE_FUNCTIONS, extension_tables
from driver_layer.ze.graph_cache import disk_cache


class zex_dditable_ext_t:
    """The functions; they raise ZeError for C's result codes."""

    @checked
    def zexDiskCacheSetSize(self, size: int) -> None:
        """Set the limit of the cache of compiled graphs, in bytes, for this process."""
        disk_cache().limit = size

    @checked
    def zexDiskCacheGetSize(self) -> int:
        """Return the limit of the cache of compiled graphs, in bytes."""
        return disk_cache().limit

    @checked
    def zexDiskCacheGetDirectory(self) -> str:
        """Return the folder of the cache of compiled graphs; empty if it is disabled."""
        return str(disk_cache().folder or "")

    @checked
    def zexContextSetIdlePruningTimeout(
        self, hContext: ze_context_handle_t, timeoutMs: int
    ) -> None:
        """Set the time after which an idle context releases memory, from its next work on."""
        hContext.idle.seconds = timeoutMs / 1000


_TABLE = zex_dditable_ext_t()
extension_tables[PRIVATE_FUNCTIONS] = lambda: _TABLE
