"""Memory of the NPU, release of unused command lists, and errors of its driver."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

from driver_layer import ze
from driver_layer.support.mapped_file import MappedFile, Truncated, mapped_file_of
from npuw_layer.backends.protocols import Array
from npuw_layer.backends.release import release_with
from npuw_layer.errors import DeviceError, NpuwFault

_log = logging.getLogger(__name__)


@contextmanager
def reported(what: str) -> Generator[None, None, None]:
    """Convert errors of Level Zero to npuw's own."""
    try:
        yield
    except ze.ZeError as error:
        raise DeviceError(f"{what}: {error}") from error


def check_file(file: MappedFile | None) -> None:
    """Check that a mapped file, if any, still has all bytes before they are read.

    Raises:
        NpuwFault: the file was truncated.
    """
    if file is not None:
        try:
            file.check()
        except Truncated as error:
            raise NpuwFault(f"{error.filename} {error.strerror}") from None


class DeviceMemory:
    """Memory that host and NPU share; satisfies ``protocols.RemoteMemory``.

    Args:
        context: the context of the memory.
        memory: the driver's object.
        held: whether the last reference to this object releases the memory.
    """

    def __init__(
        self, context: ze.ze_context_handle_t, memory: ze.Memory, held: bool = False
    ) -> None:
        self.context = context
        self._memory = memory
        free = partial(free_memory, context, memory)
        self._giving_back = release_with(self, free) if held else None

    @property
    def data(self) -> Array:
        """Bytes of the memory."""
        return self._memory.data

    @property
    def file(self) -> MappedFile | None:
        """The file that the memory is mapped from, if any."""
        seen = self.alive and self.host_visible
        return mapped_file_of(self._memory.data) if seen else None

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self._memory.size

    @property
    def host_visible(self) -> bool:
        """True if the host can access the bytes."""
        return self._memory.kind is not ze.ze_memory_type_t.ZE_MEMORY_TYPE_DEVICE

    @property
    def writable(self) -> bool:
        """True if the device may write to the memory."""
        return self._memory.allocation.writable

    @property
    def alive(self) -> bool:
        """True until the memory or its context is freed."""
        return self._memory.alive and self.context.alive

    @property
    def address(self) -> int:
        """Address on the device."""
        return self._memory.address

    def check(self) -> None:
        """Check that the file that the memory is mapped from, if any, still has all bytes.

        Raises:
            NpuwFault: the file was truncated.
        """
        check_file(self.file)

    def free(self) -> None:
        """Release the memory; a second call does nothing."""
        if self._giving_back is not None:
            self._giving_back.detach()  # drops the last reference to the bytes
        free_memory(self.context, self._memory)


def free_memory(context: ze.ze_context_handle_t, memory: ze.Memory) -> None:
    """Free memory unless already freed; only log a warning if its context was lost."""
    if not memory.alive:
        return
    try:
        ze.zeMemFree(context, memory)
    except ze.ZeError as error:
        _log.warning("zeMemFree(%#x): %s", memory.address, error)
