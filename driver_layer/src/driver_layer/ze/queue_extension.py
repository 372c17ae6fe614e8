"""The command queue extension's table of functions, 1.1.

Source: fact sheet elf_driver §5.2.
"""

from __future__ import annotations

from driver_layer.ze.command_queue import ze_command_queue_handle_t
from driver_layer.ze.driver import QUEUE_EXTENSION, extension_tables
from driver_layer.ze.handles import check
from driver_layer.ze.queue_types import ze_command_queue_workload_type_t
from driver_layer.ze.result import failed, ze_result_t


class ze_command_queue_npu_dditable_ext_t:
    """The functions; all check their handles, and raise ZeError where C returns a code."""

    def pfnSetWorkloadType(
        self,
        hCommandQueue: ze_command_queue_handle_t,
        workloadType: ze_command_queue_workload_type_t,
    ) -> None:
        """Say whether somebody waits for what is submitted from now on.

        In the background, an inference begins when none waits that is not.

        Raises:
            ZeError: INVALID_ENUMERATION: no such type; UNSUPPORTED_FEATURE: the queue only copies.
        """
        queue = check(hCommandQueue, ze_command_queue_handle_t)
        try:
            workload = ze_command_queue_workload_type_t(workloadType)
        except ValueError:
            message = f"no workload type {workloadType}"
            raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ENUMERATION, message) from None
        queue.set_workload(workload)


_TABLE = ze_command_queue_npu_dditable_ext_t()
extension_tables[QUEUE_EXTENSION] = lambda: _TABLE
