"""Function tables of the NPU's small extensions: context, driver, command queue and private ones.

No header has the private functions; the public driver's own tests ask for them by name.

Source: docs/reference/level_zero.md#context-and-driver-extensions,
docs/reference/level_zero.md#command-queue-extension,
docs/reference/level_zero.md#private-functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import Any

from driver_layer.ze import driver, errors
from driver_layer.ze.calls import checked
from driver_layer.ze.command_queue import ze_command_queue_handle_t
from driver_layer.ze.context import ze_context_handle_t
from driver_layer.ze.graph_cache import disk_cache
from driver_layer.ze.queue_types import ze_command_queue_workload_type_t


class ze_npu_context_option_t(IntFlag):
    """Options of a context."""

    ZE_NPU_CONTEXT_OPTION_IDLE_OPTIMIZATIONS = 1
    """Release scratch memory after the context was idle for a while."""


@dataclass(frozen=True, slots=True)
class ze_context_properties_npu_ext_t:
    """Properties of a context."""

    options: ze_npu_context_option_t | int


class ze_context_npu_dditable_ext_t:
    """The context extension's function table, 1.0."""

    @checked
    def pfnSetProperties(
        self, hContext: ze_context_handle_t, ContextProperties: ze_context_properties_npu_ext_t
    ) -> None:
        """Set the options of a context; without a call, idle optimisations are on from 4000 on.

        Raises:
            ZeError: INVALID_ENUMERATION: unknown options.
        """
        options = ContextProperties.options
        errors.check_known(options, ze_npu_context_option_t)
        if options & ze_npu_context_option_t.ZE_NPU_CONTEXT_OPTION_IDLE_OPTIMIZATIONS:
            hContext.idle.enable()
        else:
            hContext.idle.disable()

    @checked
    def pfnReleaseMemory(self, hContext: ze_context_handle_t) -> None:
        """Release the context's prepared programs and scratch; the next inference renews them."""
        hContext.device.npu.release(hContext.space)


@dataclass(frozen=True, slots=True)
class ze_driver_extension_npu_ext_t:
    """Name and version of an extension; the table is a result, not a field, unlike in C."""

    name: str
    version: int


class ze_driver_npu_dditable_ext_t:
    """The driver extension's function table, 1.0."""

    @checked
    def pfnGetExtension(
        self, hDriver: driver.ze_driver_handle_t, pExtension: ze_driver_extension_npu_ext_t
    ) -> Any:
        """Return an extension's function table.

        Raises:
            ZeError: INVALID_ARGUMENT: the extension is unknown or has no table;
                UNSUPPORTED_VERSION: the version is newer than the driver's.
        """
        return driver.table_of(pExtension.name, pExtension.version)


class ze_command_queue_npu_dditable_ext_t:
    """The command queue extension's function table, 1.1."""

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


class zex_dditable_ext_t:
    """The private functions."""

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


driver.extension_tables[driver.CONTEXT_EXTENSION] = ze_context_npu_dditable_ext_t()
driver.extension_tables[driver.DRIVER_EXTENSION] = ze_driver_npu_dditable_ext_t()
driver.extension_tables[driver.QUEUE_EXTENSION] = ze_command_queue_npu_dditable_ext_t()
driver.extension_tables[driver.PRIVATE_FUNCTIONS] = zex_dditable_ext_t()
