"""Memory of the NPU, command lists that nobody holds any more, and errors of its driver."""

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
    """Turn what Level Zero raises into npuw's own error."""
    try:
        yield
    except ze.ZeError as error:
        raise DeviceError(f"{what}: {error}") from error


def check_file(file: MappedFile | None) -> None:
    """See that a file has all the bytes that are about to be read where it is mapped, if it is one.

    Raises:
        NpuwFault: it was truncated.
    """
    if file is not None:
        try:
            file.check()
        except Truncated as error:
            raise NpuwFault(f"{error.filename} {error.strerror}") from None


class DeviceMemory:
    """Memory that host and NPU share; satisfies ``protocols.RemoteMemory``.

    Args:
        context: where it is.
        memory: what the driver knows it by.
        held: whether it goes back when nobody holds this any more.
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
        """The bytes."""
        return self._memory.data

    @property
    def file(self) -> MappedFile | None:
        """The file that it is mapped from, if it is one."""
        seen = self.alive and self.host_visible
        return mapped_file_of(self._memory.data) if seen else None

    @property
    def nbytes(self) -> int:
        """Its size."""
        return self._memory.size

    @property
    def host_visible(self) -> bool:
        """Whether the host sees the bytes."""
        return self._memory.kind is not ze.ze_memory_type_t.ZE_MEMORY_TYPE_DEVICE

    @property
    def writable(self) -> bool:
        """Whether the device may write to it."""
        return self._memory.allocation.writable

    @property
    def alive(self) -> bool:
        """Whether nobody has freed it."""
        return self._memory.alive and self.context.alive

    @property
    def address(self) -> int:
        """Where the device sees it."""
        return self._memory.address

    def check(self) -> None:
        """See that the file that it is mapped from, if any, still has all bytes.

        Raises:
            NpuwFault: the file was truncated.
        """
        check_file(self.file)

    def free(self) -> None:
        """Release the memory; a second call does nothing."""
        if self._giving_back is not None:
            self._giving_back.detach()  # with it goes the last that refers to the bytes
        free_memory(self.context, self._memory)


def free_memory(context: ze.ze_context_handle_t, memory: ze.Memory) -> None:
    """Give memory back unless that was done; only warn if its context was lost meanwhile."""
    if not memory.alive:
        return
    try:
        ze.zeMemFree(context, memory)
    except ze.ZeError as error:
        _log.warning("zeMemFree(%#x): %s", memory.address, error)


def destroy_list(commands: ze.ze_command_list_handle_t) -> None:
    """End a command list that nobody holds any more.

    One that executes is left to the driver: what it uses stays its own, and nobody else's.
    """
    try:
        ze.zeCommandListDestroy(commands)
    except ze.ZeError as error:
        code = ze.ze_result_t(error.code)
        if code is not ze.ze_result_t.ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE:
            raise
