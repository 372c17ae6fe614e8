"""The command queue extension's function table, 1.1.

Source: docs/reference/level_zero.md#command-queue-extension.
"""

from __future__ import annotations

from driver_layer.ze.calls import checked
from driver_layer.ze.command_queue import ze_command_queue_handle_t
from driver_layer.ze.driver import QUEUE_EXTENSION, extension_tables
from driver_layer.ze.queue_types import ze_command_queue_workload_type_t


class ze_command_queue_npu_dditable_ext_t:
    """The function table; functions check their handles, and raise ZeError for C's result codes."""

    @checked
    def pfnSetWorkloadType(
        self,
        hCommandQueue: ze_command_queue_handle_t,
        workloadType: ze_command_queue_workload_type_t,
    ) -> None:
        """Set the workload type of later submissions.

        A background inference begins only if no inference of the default type is waiting.

        Raises:
            ZeError: INVALID_ENUMERATION: unknown type; UNSUPPORTED_FEATURE: the queue only copies.
        """
        hCommandQueue.set_workload(ze_command_queue_workload_type_t(workloadType))


_TABLE = ze_command_queue_npu_dditable_ext_t()
extension_tables[QUEUE_EXTENSION] = lambda: _TABLE
