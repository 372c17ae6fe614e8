"""The driver's errors.

DriverError
├── DriverUsageError      you called it wrongly
│   ├── EngineError       an engine was asked for that this machine does not have
│   └── ZeError           a Level Zero call was refused; carries its result code
├── DriverInputError      what you gave is bad
│   ├── PlatformError     a platform's file is malformed; names file and key
│   └── BlobError         a blob is malformed; names section and offset
│       ├── HeaderError         the ELF header or section table
│       ├── SectionError        a section: type, flags, bounds, content
│       ├── RelocError          a relocation
│       ├── CompatibilityError  made for another platform or another version
│       └── KernelError         a SHAVE program or its arguments
└── DriverFault           the device failed
    ├── OutOfMemory       an address range or the host has no room left
    │   └── NoDescriptor  the process may not open any more
    └── DeviceFault       a task failed; names engine, task and address
"""

from __future__ import annotations

from enum import IntEnum


class DriverError(Exception):
    """Anything that goes wrong in the driver."""


class DriverUsageError(DriverError):
    """The caller broke a rule of the interface."""


class EngineError(DriverUsageError):
    """The engine, or the level of instructions, that was asked for is not to be had."""


class ZeError(DriverUsageError):
    """A Level Zero call did not succeed.

    Args:
        code: its ``ze_result_t``.
        message: why.
    """

    def __init__(self, code: IntEnum, message: str) -> None:
        self.code = code
        super().__init__(f"{code.name}: {message}")


class DriverInputError(DriverError):
    """Something given to the driver is bad."""


class DriverFault(DriverError):
    """The device, not its user, failed."""


class PlatformError(DriverInputError):
    """A platform's file is malformed.

    Args:
        message: what is wrong.
        file: its name.
        key: the key concerned, if it is one.
    """

    def __init__(self, message: str, file: str, key: str | None = None) -> None:
        self.file = file
        self.key = key
        place = file if key is None else f"{file}: {key}"
        super().__init__(f"{place}: {message}")


class BlobError(DriverInputError):
    """A blob is malformed.

    Args:
        message: what is wrong.
        section: name or index of the section, if one is concerned.
        offset: byte offset in the section, or in the file if there is no section.
    """

    def __init__(self, message: str, section: str | None = None, offset: int | None = None) -> None:
        self.section = section
        self.offset = offset
        place = f"section {section}" if section is not None else "blob"
        if offset is not None:
            place += f" at offset {offset:#x}"
        super().__init__(f"{place}: {message}")


class HeaderError(BlobError):
    """The ELF header or the section header table is malformed."""


class SectionError(BlobError):
    """A section has a wrong type, flags, bounds or content."""


class RelocError(BlobError):
    """A relocation points outside its target, or has an unknown type."""


class CompatibilityError(BlobError):
    """The blob is for another platform, or written for a version that is not accepted."""


class KernelError(BlobError):
    """A SHAVE program or its argument block breaks a rule."""


class OutOfMemory(DriverFault):
    """An address range, or the host's memory, is exhausted."""


class NoDescriptor(OutOfMemory):
    """The process, or the system, has as many descriptors open as it may."""


class DeviceFault(DriverFault):
    """A task failed on the device.

    Args:
        message: what happened.
        engine: the queue it happened on, e.g. "DPU tile 0".
        task: index of the task in its list.
        address: the device address concerned.
    """

    def __init__(
        self,
        message: str,
        engine: str | None = None,
        task: int | None = None,
        address: int | None = None,
    ) -> None:
        self.message = message
        self.engine = engine
        self.task = task
        self.address = address
        place = "" if engine is None else f"{engine}, task {task}: "
        where = "" if address is None else f" at address {address:#x}"
        super().__init__(f"{place}{message}{where}")

    def at(self, engine: str, task: int) -> DeviceFault:
        """Give the same fault with the task that it happened in."""
        return DeviceFault(self.message, engine, task, self.address)
