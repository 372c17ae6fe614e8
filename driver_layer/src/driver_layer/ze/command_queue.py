"""Command queues and fences: handing work to the device, and waiting for it.

Source: Level Zero core specification 1.17; fact sheet elf_driver §5.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from driver_layer.errors import DeviceFault, ZeError
from driver_layer.ze import types as t
from driver_layer.ze.command_list import Command, ListState, ze_command_list_handle_t
from driver_layer.ze.context import ze_context_handle_t
from driver_layer.ze.driver import QUEUE_GROUPS, ze_device_handle_t
from driver_layer.ze.event import UINT64_MAX
from driver_layer.ze.handles import Handle, check
from driver_layer.ze.result import failed, ze_result_t

_SYNCHRONOUS = t.ze_command_queue_mode_t.ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS


class ze_command_queue_handle_t(Handle):
    """A queue of one device; submissions run in their order, beside those of other queues."""

    def __init__(self, context: ze_context_handle_t, desc: t.ze_command_queue_desc_t) -> None:
        super().__init__()
        self.context = context
        self.desc = desc
        kind = "copy" if desc.ordinal else "compute"
        self.stream = context.device.npu.stream(kind)
        self.last: Future[object] | None = None


class ze_fence_handle_t(Handle):
    """Tells when a submission is done.

    ``work`` is None until the fence was given to a submission.
    """

    def __init__(self, queue: ze_command_queue_handle_t, signaled: bool) -> None:
        super().__init__()
        self.queue = queue
        self.signaled = signaled
        self.work: Future[object] | None = None


def zeCommandQueueCreate(
    hContext: ze_context_handle_t,
    hDevice: ze_device_handle_t,
    desc: t.ze_command_queue_desc_t | None = None,
) -> ze_command_queue_handle_t:
    """Make a queue.

    Raises:
        ZeError: INVALID_ARGUMENT: there is no such group, or it has no such queue.
    """
    check(hDevice, ze_device_handle_t)
    desc = desc or t.ze_command_queue_desc_t()
    known = 0 <= desc.ordinal < len(QUEUE_GROUPS)
    if not known or not 0 <= desc.index < QUEUE_GROUPS[desc.ordinal].numQueues:
        message = f"no queue {desc.index} in group {desc.ordinal}"
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_ARGUMENT, message)
    return ze_command_queue_handle_t(check(hContext, ze_context_handle_t), desc)


def zeCommandQueueDestroy(hCommandQueue: ze_command_queue_handle_t) -> None:
    """End a queue; what was submitted still runs."""
    check(hCommandQueue, ze_command_queue_handle_t).alive = False


def zeCommandQueueExecuteCommandLists(
    hCommandQueue: ze_command_queue_handle_t,
    phCommandLists: Sequence[ze_command_list_handle_t],
    hFence: ze_fence_handle_t | None = None,
) -> None:
    """Hand closed lists to the device; returns at once unless the queue is synchronous.

    Raises:
        ZeError: INVALID_SIZE: no list; UNINITIALIZED: a list is open; INVALID_COMMAND_LIST_TYPE: it
            is for another group of queues; INVALID_SYNCHRONIZATION_OBJECT: the fence is of another
            queue; of a synchronous queue also what zeCommandQueueSynchronize raises.
    """
    queue = check(hCommandQueue, ze_command_queue_handle_t)
    lists = _executable(queue, phCommandLists)
    commands = [command for command_list in lists for command in command_list.commands]
    if hFence is not None and check(hFence, ze_fence_handle_t).queue is not queue:
        code = ze_result_t.ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT
        raise failed(code, "the fence is of another queue")
    queue.last = queue.stream.submit(lambda: _run_all(commands))
    for command_list in lists:
        command_list.last = queue.last
    if hFence is not None:
        hFence.work = queue.last
    if queue.desc.mode is _SYNCHRONOUS:
        _wait(queue.last, UINT64_MAX)


def _executable(
    queue: ze_command_queue_handle_t, given: Sequence[ze_command_list_handle_t]
) -> list[ze_command_list_handle_t]:
    """Check that lists can be executed on a queue."""
    if not given:
        raise failed(ze_result_t.ZE_RESULT_ERROR_INVALID_SIZE, "no command list given")
    lists = [check(each, ze_command_list_handle_t) for each in given]
    for command_list in lists:
        if command_list.state is not ListState.CLOSED:
            raise failed(ze_result_t.ZE_RESULT_ERROR_UNINITIALIZED, "a command list is not closed")
        if command_list.desc.commandQueueGroupOrdinal != queue.desc.ordinal:
            code = ze_result_t.ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE
            raise failed(code, "a command list is for another group of queues")
    return lists


def _run_all(commands: Sequence[Command]) -> None:
    """Run commands; if one fails, whoever waits for the events of the others is told."""
    for number, command in enumerate(commands):
        try:
            command()
        except Exception as error:
            fault = error if isinstance(error, DeviceFault) else DeviceFault(repr(error))
            for left in commands[number:]:
                if left.signal is not None:
                    left.signal.abandon(fault)
            raise


def zeCommandQueueSynchronize(
    hCommandQueue: ze_command_queue_handle_t, timeout: int = UINT64_MAX
) -> None:
    """Wait until all that was submitted is done.

    Args:
        hCommandQueue: the queue.
        timeout: nanoseconds.

    Raises:
        ZeError: NOT_READY: the time is over; DEVICE_LOST: a task failed, ``__cause__`` says which.
    """
    queue = check(hCommandQueue, ze_command_queue_handle_t)
    if queue.last is not None:
        _wait(queue.last, timeout)


def _wait(work: Future[object], timeout: int) -> None:
    try:
        work.result(None if timeout >= UINT64_MAX else timeout / 1e9)
    except TimeoutError:
        raise failed(ze_result_t.ZE_RESULT_NOT_READY, "still running") from None
    except DeviceFault as fault:
        raise failed(ze_result_t.ZE_RESULT_ERROR_DEVICE_LOST, str(fault)) from fault


def zeFenceCreate(
    hCommandQueue: ze_command_queue_handle_t, flags: t.ze_fence_flags_t | int = 0
) -> ze_fence_handle_t:
    """Make a fence; with ZE_FENCE_FLAG_SIGNALED it begins as if its work were done."""
    queue = check(hCommandQueue, ze_command_queue_handle_t)
    return ze_fence_handle_t(queue, bool(flags & t.ze_fence_flags_t.ZE_FENCE_FLAG_SIGNALED))


def zeFenceDestroy(hFence: ze_fence_handle_t) -> None:
    """End a fence."""
    check(hFence, ze_fence_handle_t).alive = False


def zeFenceHostSynchronize(hFence: ze_fence_handle_t, timeout: int = UINT64_MAX) -> None:
    """Wait for a fence, ``timeout`` nanoseconds.

    Raises:
        ZeError: NOT_READY: nothing was submitted with it, or the time is over; DEVICE_LOST.
    """
    fence = check(hFence, ze_fence_handle_t)
    if fence.work is not None:
        _wait(fence.work, timeout)
    elif not fence.signaled:
        message = "the fence was not given to a submission"
        raise failed(ze_result_t.ZE_RESULT_NOT_READY, message)


def zeFenceQueryStatus(hFence: ze_fence_handle_t) -> ze_result_t:
    """Tell whether a fence is signaled: SUCCESS, NOT_READY or DEVICE_LOST."""
    try:
        zeFenceHostSynchronize(hFence, 0)
    except ZeError as error:
        if error.code in (
            ze_result_t.ZE_RESULT_NOT_READY,
            ze_result_t.ZE_RESULT_ERROR_DEVICE_LOST,
        ):
            return ze_result_t(error.code)
        raise
    return ze_result_t.ZE_RESULT_SUCCESS


def zeFenceReset(hFence: ze_fence_handle_t) -> None:
    """Make a fence as new, not signaled."""
    fence = check(hFence, ze_fence_handle_t)
    fence.work, fence.signaled = None, False
