"""The command queue extension's function table, 1.1.

Source: docs/reference/level_zero.md#command-queue-extension.
"""

from __future__ import annotations

from driver_layer.ze.command_queue import ze_command_queue_handle_t
from driver_layer.ze.driver import QUEUE_EXTENSION, extension_tables
from driver_layer.ze.handles import check
from driver_layer.ze.queue_types import ze_command_queue_workload_type_t
from driver_layer.ze.result import failed, ze_result_t


class ze_command_queue_npu_dditable_ext_t:
    """The function table; functions check their handles, and raise ZeError for C's result codes."""

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
        queue = check(hCommandQueue, ze_command_queue_handle_t)
        try:
            workload = ze_command_queue_workload_type_t(workloadType)
        except ValueError:
            message = f"unknown workload type {workloadType}"
            raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ENUMERATION, message) from None
        queue.set_workload(workload)


_TABLE = ze_command_queue_npu_dditable_ext_t()
extension_tables[QUEUE_EXTENSION] = lambda: _TABLE
