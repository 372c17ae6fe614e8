"""The context extension's function table, 1.0.

Source: docs/reference/level_zero.md#context-and-driver-extensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

from driver_layer.ze.calls import checked
from driver_layer.ze.context import ze_context_handle_t
from driver_layer.ze.driver import CONTEXT_EXTENSION, extension_tables
from driver_layer.ze.result import check_known


class ze_npu_context_option_t(IntFlag):
    """Options of a context."""

    ZE_NPU_CONTEXT_OPTION_IDLE_OPTIMIZATIONS = 1
    """Release memory while the device is idle."""


@dataclass(frozen=True, slots=True)
class ze_context_properties_npu_ext_t:
    """Properties of a context."""

    options: ze_npu_context_option_t | int


class ze_context_npu_dditable_ext_t:
    """The function table; its functions raise ZeError for C's result codes."""

    @checked
    def pfnSetProperties(
        self, hContext: ze_context_handle_t, ContextProperties: ze_context_properties_npu_ext_t
    ) -> None:
        """Set the options of a context.

        Idle optimisations are accepted without effect: what the device keeps for speed is released
        by ``pfnReleaseMemory`` alone.

        Raises:
            ZeError: INVALID_ENUMERATION: unknown options.
        """
        del hContext
        check_known(ContextProperties.options, ze_npu_context_option_t)

    @checked
    def pfnReleaseMemory(self, hContext: ze_context_handle_t) -> None:
        """Release the context's prepared programs; the next inference prepares its own again."""
        hContext.device.npu.release(hContext.space)


_TABLE = ze_context_npu_dditable_ext_t()
extension_tables[CONTEXT_EXTENSION] = lambda: _TABLE
