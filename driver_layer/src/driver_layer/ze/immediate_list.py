"""Immediate command lists: each command is submitted when it is appended.

Source: Level Zero core specification 1.17; docs/reference/level_zero.md#command-lists.
"""

from __future__ import annotations

from driver_layer.ze import errors
from driver_layer.ze.calls import checked
from driver_layer.ze.command_list import (
    Command,
    ze_command_list_desc_t,
    ze_command_list_handle_t,
)
from driver_layer.ze.command_queue import (
    run_all,
    ze_command_queue_handle_t,
    zeCommandQueueCreate,
)
from driver_layer.ze.context import ze_context_handle_t
from driver_layer.ze.driver import ze_device_handle_t
from driver_layer.ze.event import UINT64_MAX
from driver_layer.ze.queue_types import ze_command_queue_desc_t, ze_command_queue_mode_t

_SYNCHRONOUS = ze_command_queue_mode_t.ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS


class ImmediateCommandList(ze_command_list_handle_t):
    """A list that is always open, with a queue of its own."""

    def __init__(self, queue: ze_command_queue_handle_t) -> None:
        super().__init__(queue.context, ze_command_list_desc_t(queue.desc.ordinal))
        self.queue = queue

    def _add(self, command: Command) -> None:
        """Submit a command; a synchronous list waits for its end.

        Raises:
            ZeError: the error of the command, if the list is synchronous.
        """

        def run() -> None:
            try:
                run_all((command,))
            finally:
                command.release()

        self.last = self.queue.stream
        work = self.last = self.queue.submit(run)
        if self.queue.desc.mode == _SYNCHRONOUS:
            self.queue.wait_for(work, UINT64_MAX)

    def close(self) -> None:
        """Reject the call.

        Raises:
            ZeError: UNINITIALIZED, as the public driver's test ImmediateCmdList requires.
        """
        message = "an immediate list executes its commands at once and is never closed"
        raise errors.uninitialized(message)

    def reset(self) -> None:
        """Do nothing: the list keeps no commands."""

    def destroy(self) -> None:
        """Destroy the list and its queue; commands that were appended still run."""
        self.queue.alive = False
        self.alive = False


@checked
def zeCommandListCreateImmediate(
    hContext: ze_context_handle_t, hDevice: ze_device_handle_t, altdesc: ze_command_queue_desc_t
) -> ze_command_list_handle_t:
    """Create an immediate list, whose queue the descriptor describes; raises as the queue's call.

    A graph's execution releases its resources when it has ended.
    """
    return ImmediateCommandList(zeCommandQueueCreate(hContext, hDevice, altdesc))


@checked
def zeCommandListHostSynchronize(
    hCommandList: ze_command_list_handle_t, timeout: int = UINT64_MAX
) -> None:
    """Wait until all commands of an immediate list have ended.

    Args:
        hCommandList: the list.
        timeout: nanoseconds.

    Raises:
        ZeError: UNINITIALIZED: the list is not immediate, as in the public driver; NOT_READY:
            timeout; DEVICE_LOST: a command failed since the last call; UNKNOWN: the simulator
            failed.
    """
    if not isinstance(hCommandList, ImmediateCommandList):
        message = "only an immediate list can be waited for; wait for the queue instead"
        raise errors.uninitialized(message)
    hCommandList.queue.wait(timeout)


@checked
def zeCommandListIsImmediate(hCommandList: ze_command_list_handle_t) -> bool:
    """Return whether a list is immediate."""
    return isinstance(hCommandList, ImmediateCommandList)


@checked
def zeCommandListImmediateGetIndex(hCommandListImmediate: ze_command_list_handle_t) -> int:
    """Return the index of an immediate list's queue in its group.

    Raises:
        ZeError: INVALID_ARGUMENT: the list is not immediate.
    """
    if not isinstance(hCommandListImmediate, ImmediateCommandList):
        raise errors.invalid_argument("the list is not immediate")
    return hCommandListImmediate.queue.desc.index
