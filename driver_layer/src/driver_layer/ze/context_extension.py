"""The context extension's function table, 1.0.

Source: docs/reference/level_zero.md#context-and-driver-extensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

from driver_layer.ze import errors
from driver_layer.ze.calls import checked
from driver_layer.ze.context import ze_context_handle_t
from driver_layer.ze.driver import CONTEXT_EXTENSION, extension_tables


class ze_npu_context_option_t(IntFlag):
    """Options of a context."""

    ZE_NPU_CONTEXT_OPTION_IDLE_OPTIMIZATIONS = 1
    """Release scratch memory after the context was idle for a while."""


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


_TABLE = ze_context_npu_dditable_ext_t()
extension_tables[CONTEXT_EXTENSION] = lambda: _TABLE
