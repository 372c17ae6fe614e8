"""Command lists: what the device is to do, recorded once and executed as often as wanted.

Source: Level Zero core specification 1.17; fact sheet elf_driver §5.3.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np

from driver_layer.ze.context import Pointer, ze_context_handle_t
from driver_layer.ze.driver import ze_device_handle_t
from driver_layer.ze.handles import Handle, check
from driver_layer.ze.result import failed, ze_result_t

Command = Callable[[], None]


class ListState(Enum):
    """OPEN takes commands; CLOSED may be executed."""

    OPEN = "open"
    CLOSED = "closed"


class ze_command_list_handle_t(Handle):
    """A command list.

    =========== ======= ========= ===========
    state       append  close     execute
    =========== ======= ========= ===========
    OPEN        yes     → CLOSED  UNINITIALIZED
    CLOSED      no      no effect yes
    =========== ======= ========= ===========

    Reset gives an OPEN, empty list from either state.
    """

    def __init__(self, context: ze_context_handle_t) -> None:
        super().__init__()
        self.context = context
        self.state = ListState.OPEN
        self.commands: list[Command] = []
        self._releases: list[Callable[[], None]] = []

    def append(self, command: Command, release: Callable[[], None] | None = None) -> None:
        """Record a command; ``release`` is called when the list no longer needs what it uses.

        Raises:
            ZeError: INVALID_ARGUMENT: the list is closed.
        """
        if self.state is not ListState.OPEN:
            message = "the command list is closed; reset it first"
            raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)
        self.commands.append(command)
        if release is not None:
            self._releases.append(release)

    def reset(self) -> None:
        """Forget all commands."""
        for release in self._releases:
            release()
        self.commands, self._releases = [], []
        self.state = ListState.OPEN


def zeCommandListCreate(
    hContext: ze_context_handle_t, hDevice: ze_device_handle_t
) -> ze_command_list_handle_t:
    """Make an open, empty list."""
    check(hDevice, ze_device_handle_t)
    return ze_command_list_handle_t(check(hContext, ze_context_handle_t))


def zeCommandListDestroy(hCommandList: ze_command_list_handle_t) -> None:
    """End a list; it must not be executing."""
    command_list = check(hCommandList, ze_command_list_handle_t)
    command_list.reset()
    command_list.alive = False


def zeCommandListClose(hCommandList: ze_command_list_handle_t) -> None:
    """Make a list ready to be executed."""
    check(hCommandList, ze_command_list_handle_t).state = ListState.CLOSED


def zeCommandListReset(hCommandList: ze_command_list_handle_t) -> None:
    """Empty a list and open it; it must not be executing."""
    check(hCommandList, ze_command_list_handle_t).reset()


def zeCommandListAppendBarrier(hCommandList: ze_command_list_handle_t) -> None:
    """Let what follows wait for what came before; here it does so anyway."""
    check(hCommandList, ze_command_list_handle_t).append(_nothing)


def _nothing() -> None:
    """Commands run one after the other."""


def zeCommandListAppendMemoryCopy(
    hCommandList: ze_command_list_handle_t, dstptr: Pointer, srcptr: Pointer, size: int
) -> None:
    """Record a copy of ``size`` bytes.

    Raises:
        ZeError: INVALID_NULL_POINTER, INVALID_ARGUMENT: not memory of the list's context, or the
            target may only be read.
    """
    command_list = check(hCommandList, ze_command_list_handle_t)
    target = command_list.context.bytes_at(dstptr, size, write=True)
    source = command_list.context.bytes_at(srcptr, size)
    command_list.append(lambda: np.copyto(target, source))


def zeCommandListAppendMemoryFill(
    hCommandList: ze_command_list_handle_t, ptr: Pointer, pattern: bytes, size: int
) -> None:
    """Record that ``size`` bytes are to be filled with a repeated pattern.

    Raises:
        ZeError: INVALID_SIZE: the pattern's length is no power of two, or ``size`` is not a
            multiple of it; else as zeCommandListAppendMemoryCopy.
    """
    command_list = check(hCommandList, ze_command_list_handle_t)
    length = len(pattern)
    if not length or length & (length - 1) or size % length:
        message = f"{size} bytes cannot be filled with a pattern of {length}"
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_SIZE, message)
    target = command_list.context.bytes_at(ptr, size, write=True).reshape(-1, length)
    repeated = np.frombuffer(pattern, np.uint8)
    command_list.append(lambda: np.copyto(target, repeated))
