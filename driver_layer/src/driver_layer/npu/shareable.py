"""Memory that other processes can reach: what a DMA-BUF is to a real device.

It is a memfd. Whoever holds a descriptor of it, or has mapped it, holds the memory, so it outlives
the process that made it. Its size is sealed: nobody can cut it short under another's feet.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import sys

import numpy as np

from driver_layer.errors import DriverInputError, NoDescriptor, OutOfMemory
from driver_layer.npu.memory import PAGE_BYTES, Bytes

if sys.platform == "linux":
    import fcntl

    _SIZE_IS_SEALED = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW

CAN_SHARE = sys.platform == "linux"
"""Whether the host has such memory."""


class Shareable:
    """Bytes with a descriptor, by which other processes map the same bytes.

    Args:
        descriptor: becomes this object's own.
        size: bytes of it to map.
        writable: False maps them for reading alone.

    Raises:
        DriverInputError: the descriptor is not such memory, or shorter, or may not be written.
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
        """Take ``size`` bytes, zeroed, beginning at a page.

        Raises:
            OutOfMemory: the host has no such memory; as NoDescriptor, no descriptor for it.
        """
        try:
            descriptor = os.memfd_create("npu", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        except OSError as error:
            check_descriptors_left(error)
            raise OutOfMemory(f"no memory to share: {error.strerror}") from None
        try:
            os.ftruncate(descriptor, -(-size // PAGE_BYTES) * PAGE_BYTES)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SIZE_IS_SEALED)
        except (OSError, OverflowError):
            os.close(descriptor)
            raise OutOfMemory(f"the host has no {size} bytes to share") from None
        return Shareable(descriptor, size)

    @staticmethod
    def import_fd(descriptor: int, size: int, writable: bool = True) -> Shareable:
        """Map what another process has allocated; the caller keeps its descriptor.

        Raises:
            DriverInputError: as the class.
            NoDescriptor: this process has none left.
        """
        _check(descriptor, size)
        mode = os.O_RDWR if writable else os.O_RDONLY
        try:
            # Opened anew: memory that is sealed against writing is mapped from such alone.
            own = os.open(f"/proc/self/fd/{descriptor}", mode | os.O_CLOEXEC)
        except OSError as error:
            check_descriptors_left(error)
            raise DriverInputError(f"descriptor {descriptor}: {error.strerror}") from None
        return Shareable(own, size, writable)

    def export_fd(self) -> int:
        """Give a new descriptor, which is the caller's to close.

        Raises:
            NoDescriptor: this process has none left.
        """
        assert self._descriptor is not None, "used after close()"
        return duplicate(self._descriptor)

    def close(self) -> None:
        """Close the descriptor; the bytes stay as long as somebody looks at ``data``."""
        # Forgotten first: a number that is closed twice is that of another file by then.
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


def duplicate(descriptor: int) -> int:
    """Give another descriptor of the same memory.

    Raises:
        NoDescriptor: this process has none left.
    """
    try:
        return os.dup(descriptor)
    except OSError as error:
        check_descriptors_left(error)
        raise DriverInputError(f"descriptor {descriptor}: {error.strerror}") from None


def check_descriptors_left(error: OSError) -> None:
    """Raise NoDescriptor if that is why the system refused something."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        raise NoDescriptor(f"no descriptor for memory to share: {error.strerror}") from None


def _check(descriptor: int, size: int) -> None:
    """See that a descriptor is memory that cannot shrink, and has the bytes."""
    try:
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
        length = os.fstat(descriptor).st_size
    except (OSError, OverflowError, TypeError, ValueError):
        raise DriverInputError(f"descriptor {descriptor} is not memory to share") from None
    if seals & _SIZE_IS_SEALED != _SIZE_IS_SEALED:
        raise DriverInputError(f"descriptor {descriptor}: the memory's size is not sealed")
    if not 0 < size <= length:
        raise DriverInputError(f"{size} bytes are wanted of memory that has {length}")


def _mapped(descriptor: int, size: int, writable: bool) -> Bytes:
    protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    try:
        pages = mmap.mmap(descriptor, size, mmap.MAP_SHARED, protection)
    except PermissionError:
        raise DriverInputError("the memory may only be read") from None
    except (OSError, OverflowError, ValueError) as error:
        if isinstance(error, OSError):
            check_descriptors_left(error)  # a mapping keeps one of its own
        raise OutOfMemory(f"the host cannot map {size} bytes") from None
    with contextlib.suppress(OSError):  # the system may be built without large pages
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8)
