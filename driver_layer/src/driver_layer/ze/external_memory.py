"""Memory that is exported to, or imported from, other processes as a descriptor.

Exportable memory is requested at allocation and implemented differently from other memory, so other
memory has no overhead.

Source: Level Zero core specification 1.17, external memory; applications rely on keeping the
descriptors that they import.
"""

from __future__ import annotations

from driver_layer.errors import DriverInputError, NoDescriptor, OutOfMemory
from driver_layer.npu.shareable import CAN_SHARE, Shareable
from driver_layer.ze import errors
from driver_layer.ze import types as t
from driver_layer.ze.calls import checked
from driver_layer.ze.driver import ze_device_handle_t
from driver_layer.ze.host_process import HostProcess
from driver_layer.ze.result import ze_result_t

_Flags = t.ze_external_memory_type_flags_t

_KNOWN = _Flags.ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD | _Flags.ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF

SUPPORTED = _KNOWN if CAN_SHARE else _Flags.NONE
"""Forms of export that this host supports."""

SHARING_CODES: errors.Codes = {
    DriverInputError: ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT,
    NoDescriptor: ze_result_t.ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY,
    OutOfMemory: ze_result_t.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY,
}
"""Result codes of the errors of shareable memory."""


@checked
def zeDeviceGetExternalMemoryProperties(
    hDevice: ze_device_handle_t,
) -> t.ze_device_external_memory_properties_t:
    """Return the supported forms of export and import."""
    of_host = _Flags.ZE_EXTERNAL_MEMORY_TYPE_FLAG_STANDARD_ALLOCATION
    return t.ze_device_external_memory_properties_t(SUPPORTED | of_host, SUPPORTED)


def make_shareable(
    desc: t.ze_external_desc_t, size: int, writable: bool, host: HostProcess
) -> Shareable:
    """Allocate exportable memory, or map imported memory.

    Args:
        desc: a request for export or for import.
        size: size in bytes.
        writable: True maps imported memory writable.
        host: the process whose descriptor imported memory has.

    Raises:
        ZeError: UNSUPPORTED_ENUMERATION: the flags are not supported; INVALID_ARGUMENT: the
            descriptor's memory is of another kind, too small or read-only; OUT_OF_DEVICE_MEMORY;
            OUT_OF_HOST_MEMORY: the process has no descriptors left.
    """
    check_flags(desc.flags)
    with errors.failing_as(SHARING_CODES):
        if isinstance(desc, t.ze_external_memory_import_fd_t):
            return Shareable.open(host.path_of(desc.fd), size, writable)
        return Shareable.allocate(size)


def check_flags(flags: t.ze_external_memory_type_flags_t) -> None:
    """Check that the host supports the given forms of export.

    Raises:
        ZeError: UNSUPPORTED_ENUMERATION: a form is not supported.
    """
    if not flags or int(flags) & ~int(SUPPORTED):
        message = f"memory cannot be exported or imported as {flags!r}; supported: {SUPPORTED!r}"
        raise errors.unsupported_enumeration(message)
