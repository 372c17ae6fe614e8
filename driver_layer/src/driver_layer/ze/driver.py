"""Drivers: discovery, properties and extensions.

Source: Level Zero core specification 1.17; UUIDs and extensions of the public NPU driver,
docs/reference/level_zero.md#device.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from typing import Any

from driver_layer.abi.platforms import DEFAULT_PLATFORM, PLATFORM_NAMES, Platform, platform_of
from driver_layer.errors import EngineError, PlatformError
from driver_layer.npu.device import Device
from driver_layer.npu.memory import AddressSpace
from driver_layer.ze import device_types as t
from driver_layer.ze import errors
from driver_layer.ze.calls import Handle, checked
from driver_layer.ze.host_process import OWN_PROCESS, HostProcess
from driver_layer.ze.result import ze_result_t
from driver_layer.ze.types import ZE_MAKE_VERSION

ZE_API_VERSION = ZE_MAKE_VERSION(1, 17)
DRIVER_VERSION = 1776384000
"""2026-04-17, the date of the public driver whose behaviour this driver has."""
GRAPH_EXTENSION = "ZE_extension_graph"
GRAPH_EXTENSION_VERSION = ZE_MAKE_VERSION(1, 18)
PROFILING_EXTENSION = "ZE_extension_profiling_data"
PROFILING_EXTENSION_VERSION = ZE_MAKE_VERSION(1, 0)
QUEUE_EXTENSION = "ZE_extension_command_queue_npu"
QUEUE_EXTENSION_VERSION = ZE_MAKE_VERSION(1, 1)
CONTEXT_EXTENSION = "ZE_extension_context_npu"
CONTEXT_EXTENSION_VERSION = ZE_MAKE_VERSION(1, 0)
DRIVER_EXTENSION = "ZE_extension_driver_npu"
DRIVER_EXTENSION_VERSION = ZE_MAKE_VERSION(1, 0)
PRIVATE_FUNCTIONS = "zex"
"""Key of the functions that are found by their own names, one by one."""
DRIVER_UUID = "017de931-6b4d-4fd4-aa9b-5bed77fc8e89"

_WITH_TABLES = {
    GRAPH_EXTENSION: (GRAPH_EXTENSION, GRAPH_EXTENSION_VERSION),
    PROFILING_EXTENSION: (PROFILING_EXTENSION, PROFILING_EXTENSION_VERSION),
    QUEUE_EXTENSION: (QUEUE_EXTENSION, QUEUE_EXTENSION_VERSION),
    CONTEXT_EXTENSION: (CONTEXT_EXTENSION, CONTEXT_EXTENSION_VERSION),
    DRIVER_EXTENSION: (DRIVER_EXTENSION, DRIVER_EXTENSION_VERSION),
    **{
        f"{GRAPH_EXTENSION}_1_{minor}": (GRAPH_EXTENSION, ZE_MAKE_VERSION(1, minor))
        for minor in range(2, 9)
    },
}
"""Function tables by name: the name that each is registered under, and its version. The graph
extension has names for old callers, too."""
_OTHER_EXTENSIONS = {
    "ZE_extension_external_memmap_sysmem": ZE_MAKE_VERSION(1, 0),
    "ZE_experimental_mutable_command_list": ZE_MAKE_VERSION(1, 1),
}
"""Extensions without a function table: their functions are part of the library."""


class ze_driver_handle_t(Handle):
    """A driver with one device."""

    def __init__(self, platform: Platform, host: HostProcess) -> None:
        super().__init__()
        self.device = ze_device_handle_t(self, platform, host)


class ze_device_handle_t(Handle):
    """A simulated device; ``npu`` executes, ``platform`` describes it."""

    def __init__(self, driver: ze_driver_handle_t, platform: Platform, host: HostProcess) -> None:
        super().__init__()
        self.driver = driver
        self.platform = platform
        self.host = host
        """The process that calls."""
        self.npu = Device(platform)
        self.spaces: weakref.WeakSet[AddressSpace] = weakref.WeakSet()
        """Address spaces of the contexts in use."""


_lock = threading.Lock()
_drivers: dict[tuple[Platform, HostProcess], ze_driver_handle_t] = {}
_initialized = False
_host: HostProcess = OWN_PROCESS


def serve_host(host: HostProcess) -> None:
    """Make the drivers that zeInit chooses those of another process, which calls in C.

    A driver that was returned before is unchanged.
    """
    global _host
    _host = host


def simulated_driver(platform: str, host: HostProcess = OWN_PROCESS) -> ze_driver_handle_t:
    """Return the driver of a simulated platform, chosen by the caller, not by the environment.

    The specification has no such function: a real machine has one NPU, a simulator has all.

    Args:
        platform: name of a platform or product, or the path of a .toml file.
        host: the process that calls.

    Raises:
        ZeError: INVALID_ARGUMENT: the platform is unknown, or the engine that the environment
            requests (``NPU_ENGINE``, ``NPU_NATIVE_ISA``, ``NPU_ENGINE_THREADS``) is unavailable.
    """
    name = PLATFORM_NAMES.get(platform.upper(), platform)
    try:
        found = platform_of(name)
    except PlatformError as error:
        message = f"{error}; product names: {', '.join(PLATFORM_NAMES)}"
        raise errors.invalid_argument(message) from error
    with _lock:
        key = found, host
        if key not in _drivers:
            with errors.failing_as({EngineError: ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT}):
                _drivers[key] = ze_driver_handle_t(*key)
        return _drivers[key]


@checked
def zeInit(flags: int = 0) -> None:
    """Initialise the library; ``flags`` is ignored.

    The function reads the environment: ZE_INTEL_NPU_PLATFORM_OVERRIDE chooses the platform,
    ZE_INTEL_NPU_LOGLEVEL the level of log messages.

    Raises:
        ZeError: INVALID_ARGUMENT: the environment names an unknown platform.
    """
    global _initialized
    level = os.environ.get("ZE_INTEL_NPU_LOGLEVEL", "")
    if level.upper() in logging.getLevelNamesMapping():
        logging.getLogger("driver_layer").setLevel(level.upper())
    simulated_driver(_chosen_platform(), _host)
    _initialized = True


def _chosen_platform() -> str:
    return os.environ.get("ZE_INTEL_NPU_PLATFORM_OVERRIDE", "") or DEFAULT_PLATFORM


@checked
def zeInitDrivers(flags: int = 0) -> list[ze_driver_handle_t]:
    """Initialise the library and return all drivers, as newer applications do."""
    zeInit(flags)
    return zeDriverGet()


def zeDriverGet() -> list[ze_driver_handle_t]:
    """Return all drivers.

    Raises:
        ZeError: UNINITIALIZED: zeInit was not called.
    """
    if not _initialized:
        raise errors.uninitialized("the library is not initialised; call zeInit first")
    return [simulated_driver(_chosen_platform(), _host)]


@checked
def zeDriverGetApiVersion(hDriver: ze_driver_handle_t) -> int:
    """Return the version of the specification."""
    return ZE_API_VERSION


@checked
def zeDriverGetProperties(hDriver: ze_driver_handle_t) -> t.ze_driver_properties_t:
    """Describe a driver."""
    return t.ze_driver_properties_t(DRIVER_UUID, DRIVER_VERSION)


@checked
def zeDriverGetIpcProperties(hDriver: ze_driver_handle_t) -> t.ze_driver_ipc_properties_t:
    """Return the objects that the driver shares with other processes: memory, not events."""
    return t.ze_driver_ipc_properties_t(t.ze_ipc_property_flags_t.ZE_IPC_PROPERTY_FLAG_MEMORY)


@checked
def zeDriverGetLastErrorDescription(hDriver: ze_driver_handle_t) -> str:
    """Return the text of this thread's last error; empty if none occurred."""
    return errors.last_error()


@checked
def zeDriverGetExtensionProperties(
    hDriver: ze_driver_handle_t,
) -> list[t.ze_driver_extension_properties_t]:
    """List the extensions, without that for drivers, which the public driver does not list."""
    versions = {name: version for name, (_, version) in _WITH_TABLES.items()} | _OTHER_EXTENSIONS
    del versions[DRIVER_EXTENSION]
    return [t.ze_driver_extension_properties_t(*each) for each in versions.items()]


@checked
def zeDriverGetExtensionFunctionAddress(hDriver: ze_driver_handle_t, name: str) -> Any:
    """Return an extension's function table, or a function that has no table.

    Raises:
        ZeError: INVALID_ARGUMENT: the extension is unknown or has no table.
    """
    if name.startswith(PRIVATE_FUNCTIONS):
        private = getattr(extension_tables[PRIVATE_FUNCTIONS], name, None)
        if private is not None:
            return private
    return table_of(name)


def table_of(name: str, version: int = 0) -> Any:
    """Return an extension's function table.

    Raises:
        ZeError: INVALID_ARGUMENT: the extension is unknown or has no table; UNSUPPORTED_VERSION:
            this driver has an older version.
    """
    if name not in _WITH_TABLES:
        raise errors.invalid_argument(f"extension {name!r} is unknown or has no function table")
    registered, supported = _WITH_TABLES[name]
    if version > supported:
        message = f"extension {name!r}: version {version:#x} is newer than {supported:#x}"
        raise errors.failed(ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_VERSION, message)
    return extension_tables[registered]


extension_tables: dict[str, Any] = {}
"""Function tables by extension; extensions register them, so the driver need not import them."""
