"""The driver's errors.

DriverError
├── DriverUsageError      the caller broke a rule of the interface
│   ├── EngineError       this machine does not support the requested engine
│   ├── BuildError        the library for C programs cannot be built
│   └── ZeError           a Level Zero call failed; has its result code
├── DriverInputError      an input is invalid
│   ├── PlatformError     a platform file is malformed; names file and key
│   ├── GraphCompilerError  a model cannot be compiled; has the text for the user
│   └── BlobError         a blob is malformed; names section and offset
│       ├── HeaderError         the ELF header or section table
│       ├── SectionError        a section: type, flags, bounds, content
│       ├── RelocError          a relocation
│       ├── CompatibilityError  compiled for another platform or version
│       ├── WorkloadError       a DPU workload
│       └── KernelError         a SHAVE program or its arguments
└── DriverFault           the device failed; names the task, if one did
    ├── OutOfMemory       an address range or the host's memory is exhausted
    │   └── NoDescriptor  the limit of open file descriptors is reached
    └── DeviceFault       a task failed
"""

from __future__ import annotations

from enum import IntEnum
from typing import Self


class DriverError(Exception):
    """Base class of the driver's errors."""


class DriverUsageError(DriverError):
    """Misuse of the interface by the caller."""


class EngineError(DriverUsageError):
    """The requested engine, or level of instructions, is not available on this machine."""


class BuildError(DriverUsageError):
    """The library for C programs cannot be built on this machine."""


class ZeError(DriverUsageError):
    """A Level Zero call failed.

    Args:
        code: the call's ``ze_result_t``.
        message: the reason.
    """

    def __init__(self, code: IntEnum, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"{code.name}: {message}")


class DriverInputError(DriverError):
    """Invalid input: a blob or a platform file."""


class DriverFault(DriverError):
    """Failure of the device, not of the caller.

    Args:
        message: the problem.
        engine: name of the task's queue, e.g. "DPU tile 0".
        task: index of the task in its list.
        address: the device address concerned.
        op: operation of the model that the task belongs to; empty if unknown.
    """

    def __init__(
        self,
        message: str,
        engine: str | None = None,
        task: int | None = None,
        address: int | None = None,
        op: str = "",
    ) -> None:
        self.message = message
        self.engine = engine
        self.task = task
        self.address = address
        self.op = op
        named = f" ({op})" if op else ""
        place = "" if engine is None else f"{engine}, task {task}{named}: "
        where = "" if address is None else f" at address {address:#x}"
        super().__init__(f"{place}{message}{where}")

    def at(self, engine: str | None, task: int | None) -> Self:
        """Return the same fault with the queue and index of the failed task."""
        return type(self)(self.message, engine, task, self.address, self.op)

    def of(self, op: str) -> Self:
        """Return the same fault with the operation of the failed task."""
        return type(self)(self.message, self.engine, self.task, self.address, op)


def fault_of(error: DriverFault | MemoryError, engine: str | None, task: int | None) -> DriverFault:
    """Return the error of a task as a fault that names the task."""
    if isinstance(error, DriverFault):
        return error.at(engine, task)
    told = filter(None, ("the host has no memory left", str(error)))
    return OutOfMemory(": ".join(told), engine, task)


class PlatformError(DriverInputError):
    """A platform file is malformed.

    Args:
        message: the problem.
        file: name of the file.
        key: the key concerned; None if the problem is not about one key.
    """

    def __init__(self, message: str, file: str, key: str | None = None) -> None:
        self.file = file
        self.key = key
        place = file if key is None else f"{file}: {key}"
        super().__init__(f"{place}: {message}")


class GraphCompilerError(DriverInputError):
    """A model, or a build flag, that the graph compiler rejects; the text is for the user."""


class BlobError(DriverInputError):
    """A blob is malformed.

    Args:
        message: the problem.
        section: name or index of the section concerned, if any.
        offset: byte offset in the section, or in the file if no section is named.
    """

    def __init__(self, message: str, section: str | None = None, offset: int | None = None) -> None:
        self.message = message
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
    """The blob was compiled for another platform, or for a version that is not accepted."""


class WorkloadError(BlobError):
    """A DPU workload is too large, or accesses memory outside its tile's CMX."""


class KernelError(BlobError):
    """A SHAVE program or its argument block is invalid."""


class OutOfMemory(DriverFault):
    """An address range, or the host's memory, is exhausted."""


class NoDescriptor(OutOfMemory):
    """The limit of open file descriptors, of the process or the system, is reached."""


class DeviceFault(DriverFault):
    """A task failed on the device."""
