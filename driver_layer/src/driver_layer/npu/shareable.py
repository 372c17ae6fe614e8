"""Memory that processes can share, as a DMA-BUF on a real device.

The memory is a memfd. Each descriptor or mapping holds a reference, so the memory outlives the
process that created it. Its size is sealed: no process can truncate it while others use it.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import stat
import sys

import numpy as np

from driver_layer.errors import DriverInputError, NoDescriptor, OutOfMemory
from driver_layer.npu.memory import PAGE_BYTES, Bytes

if sys.platform == "linux":
    import fcntl

    _SIZE_IS_SEALED = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW

CAN_SHARE = sys.platform == "linux"
"""True if the host supports such memory."""


class Shareable:
    """Bytes with a descriptor, by which other processes map the same bytes.

    Args:
        descriptor: the descriptor, which this object then owns.
        size: number of bytes to map.
        writable: False maps the bytes read-only.

    Raises:
        DriverInputError: the descriptor's memory is of another kind, too short, or read-only.
    """

    def __init__(self, descriptor: int, size: int, writable: bool = True) -> None:
        self._descriptor: int | None = descriptor
        try:
            self.data = _mapped(descriptor, size, writable)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def allocate(size: int) -> Shareable:
        """Allocate ``size`` zeroed bytes, aligned to a page.

        Raises:
            OutOfMemory: the host has no such memory; NoDescriptor if it has no descriptor left.
        """
        try:
            descriptor = os.memfd_create("npu", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        except OSError as error:
            check_descriptors_left(error)
            raise OutOfMemory(f"no shareable memory: {error.strerror}") from None
        try:
            os.ftruncate(descriptor, -(-size // PAGE_BYTES) * PAGE_BYTES)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SIZE_IS_SEALED)
        except (OSError, OverflowError):
            os.close(descriptor)
            raise OutOfMemory(f"the host has no {size} bytes of shareable memory") from None
        return Shareable(descriptor, size)

    @staticmethod
    def open(path: str, size: int, writable: bool = True) -> Shareable:
        """Map memory that a process has allocated, by the path of its descriptor.

        Raises:
            DriverInputError: as for the class.
            NoDescriptor: this process has no descriptor left.
        """
        mode = os.O_RDWR if writable else os.O_RDONLY
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe or a device is not even opened
                raise DriverInputError(f"{path} is not shareable memory")
            # Opened again: memory that is sealed against writing needs a read-only descriptor.
            own = os.open(path, mode | os.O_CLOEXEC)
        except OSError as error:
            check_descriptors_left(error)
            raise DriverInputError(f"{path}: {error.strerror}") from None
        try:
            _check(own, size)
        except DriverInputError:
            os.close(own)
            raise
        return Shareable(own, size, writable)

    @property
    def descriptor(self) -> int:
        """The descriptor, which stays this object's."""
        assert self._descriptor is not None, "used after close()"
        return self._descriptor

    def close(self) -> None:
        """Close the descriptor; the bytes stay mapped as long as ``data`` is referenced."""
        # Cleared first: if the number were closed twice, it could be that of another file by then.
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


def duplicate(descriptor: int) -> int:
    """Return another descriptor of the same memory.

    Raises:
        NoDescriptor: this process has no descriptor left.
    """
    try:
        return os.dup(descriptor)
    except OSError as error:
        check_descriptors_left(error)
        raise DriverInputError(f"descriptor {descriptor}: {error.strerror}") from None


def check_descriptors_left(error: OSError) -> None:
    """Raise NoDescriptor if the error is a lack of descriptors."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        raise NoDescriptor(f"no descriptor for shareable memory: {error.strerror}") from None


def _check(descriptor: int, size: int) -> None:
    """Check that a descriptor is memory of sealed size, and has ``size`` bytes."""
    try:
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
        length = os.fstat(descriptor).st_size
    except (OSError, OverflowError, TypeError, ValueError):
        raise DriverInputError(f"descriptor {descriptor} is not shareable memory") from None
    if seals & _SIZE_IS_SEALED != _SIZE_IS_SEALED:
        raise DriverInputError(f"descriptor {descriptor}: the memory's size is not sealed")
    if not 0 < size <= length:
        raise DriverInputError(f"{size} bytes were requested of memory that has {length}")


def _mapped(descriptor: int, size: int, writable: bool) -> Bytes:
    protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    try:
        pages = mmap.mmap(descriptor, size, mmap.MAP_SHARED, protection)
    except PermissionError:
        raise DriverInputError("the memory is read-only") from None
    except (OSError, OverflowError, ValueError) as error:
        if isinstance(error, OSError):
            check_descriptors_left(error)  # a mapping duplicates the descriptor
        raise OutOfMemory(f"the host cannot map {size} bytes") from None
    with contextlib.suppress(OSError):  # the system may lack support for huge pages
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8)
