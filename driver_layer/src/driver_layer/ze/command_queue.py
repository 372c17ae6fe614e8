"""Command queues and fences: submission of work to the device, and waiting for its end.

Source: Level Zero core specification 1.17; docs/reference/level_zero.md#queues.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NoReturn

from driver_layer.errors import DeviceFault, DriverFault, OutOfMemory, ZeError
from driver_layer.support.outcome import Outcome
from driver_layer.ze import errors
from driver_layer.ze import queue_types as q
from driver_layer.ze import types as t
from driver_layer.ze.calls import Handle, checked
from driver_layer.ze.command_list import Command, ListState, ze_command_list_handle_t
from driver_layer.ze.context import check_device, ze_context_handle_t
from driver_layer.ze.device import QUEUE_GROUPS
from driver_layer.ze.driver import ze_device_handle_t
from driver_layer.ze.event import UINT64_MAX, seconds_of
from driver_layer.ze.result import ze_result_t

_SYNCHRONOUS = q.ze_command_queue_mode_t.ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS


class ze_command_queue_handle_t(Handle):
    """A queue of one device; submissions run in order, concurrently with those of other queues.

    Among inferences of several queues that wait for the engines, the most urgent one runs next.
    The class is thread-safe.
    """

    def __init__(self, context: ze_context_handle_t, desc: q.ze_command_queue_desc_t) -> None:
        super().__init__()
        self.context = context
        self.desc = desc
        kind = "copy" if desc.ordinal else "compute"
        self.stream = context.device.npu.stream(kind)
        self._rank = q.rank_of(desc)
        self._failed: deque[BaseException] = deque(maxlen=1)
        """Error of the latest submission that failed since the last wait for the queue."""

    def set_workload(self, workload: q.ze_command_queue_workload_type_t) -> None:
        """Set the workload type of later submissions.

        Raises:
            ZeError: UNSUPPORTED_FEATURE: the queue only copies.
        """
        self._rank = q.rank_of(self.desc, workload)

    def submit(self, job: Callable[[], object]) -> Outcome:
        """Submit a job, which runs after all earlier submissions."""
        npu, rank, failures = self.context.device.npu, self._rank, self._failed

        def work() -> None:
            try:
                with npu.engines.at(rank):
                    job()
            except BaseException as error:
                failures.append(error)
                raise

        return self.stream.submit(work)

    def wait(self, timeout: int) -> None:
        """Wait at most ``timeout`` ns for all submissions; raise the error of a failed one."""
        if not self.stream.wait(seconds_of(timeout)):
            raise errors.not_ready("timeout: the work is still running")
        self.context.idle.work_ended()
        if self._failed:
            _raise_as_result(self._failed.popleft())

    def wait_for(self, work: Outcome, timeout: int) -> None:
        """Wait at most ``timeout`` ns for one submission, and raise its error."""
        if not work.wait(seconds_of(timeout)):
            raise errors.not_ready("timeout: the work is still running")
        self.context.idle.work_ended()
        if work.error is not None:
            _raise_as_result(work.error)


class ze_fence_handle_t(Handle):
    """A fence, signaled at the end of a submission; ``work`` is None before the submission."""

    def __init__(self, queue: ze_command_queue_handle_t, signaled: bool) -> None:
        super().__init__()
        self.queue = queue
        self.signaled = signaled
        self.work: Outcome | None = None


@checked
def zeCommandQueueCreate(
    hContext: ze_context_handle_t,
    hDevice: ze_device_handle_t,
    desc: q.ze_command_queue_desc_t | None = None,
) -> ze_command_queue_handle_t:
    """Create a queue.

    Submissions always run in order, as DEVICE_SYNC requests.

    Raises:
        ZeError: INVALID_ARGUMENT: the group or the queue does not exist, or the device is not the
            context's; INVALID_ENUMERATION: unknown priority or options, or DEVICE_SYNC for a
            synchronous queue; UNSUPPORTED_FEATURE: a priority of a copy queue.
    """
    check_device(hContext, hDevice)
    desc = desc or q.ze_command_queue_desc_t()
    known = 0 <= desc.ordinal < len(QUEUE_GROUPS)
    if not known or not 0 <= desc.index < QUEUE_GROUPS[desc.ordinal].numQueues:
        raise errors.invalid_argument(f"no queue {desc.index} in group {desc.ordinal}")
    q.check_choices(desc)
    return ze_command_queue_handle_t(hContext, desc)


@checked
def zeCommandQueueDestroy(hCommandQueue: ze_command_queue_handle_t) -> None:
    """Destroy a queue; earlier submissions still run."""
    hCommandQueue.alive = False


@checked
def zeCommandQueueExecuteCommandLists(
    hCommandQueue: ze_command_queue_handle_t,
    phCommandLists: Sequence[ze_command_list_handle_t],
    hFence: ze_fence_handle_t | None = None,
) -> None:
    """Submit closed lists; return immediately unless the queue is synchronous.

    Raises:
        ZeError: INVALID_SIZE: no list; UNINITIALIZED: a list is not closed;
            INVALID_COMMAND_LIST_TYPE: a list is for another group of queues; INVALID_ARGUMENT: a
            list is of another context; INVALID_SYNCHRONIZATION_OBJECT: the fence is of another
            queue; for a synchronous queue also the errors of zeFenceHostSynchronize.
    """
    queue = hCommandQueue
    lists = _executable(queue, phCommandLists)
    commands = [command for command_list in lists for command in command_list.commands]
    if hFence is not None and hFence.queue is not queue:
        raise errors.invalid_synchronization_object("the fence belongs to another queue")
    for command_list in lists:
        command_list.last = queue.stream
    work = queue.submit(lambda: run_all(commands))
    for command_list in lists:
        command_list.last = work
    if hFence is not None:
        hFence.work = work
    if hCommandQueue.desc.mode == _SYNCHRONOUS:
        queue.wait_for(work, UINT64_MAX)


def _executable(
    queue: ze_command_queue_handle_t, given: Sequence[ze_command_list_handle_t]
) -> list[ze_command_list_handle_t]:
    """Return the lists, after a check that the queue can execute them."""
    if not given:
        raise errors.invalid_size("no command list given")
    lists = list(given)
    for command_list in lists:
        if command_list.state is not ListState.CLOSED:
            raise errors.uninitialized("a command list is not closed")
        if command_list.desc.commandQueueGroupOrdinal != queue.desc.ordinal:
            raise errors.invalid_command_list_type("a command list is for another group of queues")
        if command_list.context is not queue.context:
            raise errors.invalid_argument("command list and queue belong to different contexts")
    return lists


def run_all(commands: Sequence[Command]) -> None:
    """Run commands; if one fails, abandon the events that the remaining ones would signal."""
    for number, command in enumerate(commands):
        try:
            command()
        except Exception as error:
            fault = error if isinstance(error, DriverFault) else DeviceFault(repr(error))
            for left in commands[number:]:
                if left.signal is not None:
                    left.signal.abandon(fault)
            raise


@checked
def zeCommandQueueSynchronize(
    hCommandQueue: ze_command_queue_handle_t, timeout: int = UINT64_MAX
) -> None:
    """Wait until all submissions have ended.

    Args:
        hCommandQueue: the queue.
        timeout: nanoseconds.

    Raises:
        ZeError: NOT_READY: timeout; DEVICE_LOST: a task of any submission since the last call
            failed, ``__cause__`` names it; OUT_OF_DEVICE_MEMORY: the host has no memory left for a
            task, ``__cause__`` names it; UNKNOWN: the simulator failed.
    """
    hCommandQueue.wait(timeout)


def _raise_as_result(error: BaseException) -> NoReturn:
    """Raise the error of a submission as a ZeError."""
    text = str(error) if isinstance(error, DriverFault) else repr(error)
    raise errors.failed(_result_of(error), text) from error


def _result_of(error: BaseException) -> ze_result_t:
    if isinstance(error, OutOfMemory):
        return ze_result_t.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY
    lost = isinstance(error, DeviceFault)
    return ze_result_t.ZE_RESULT_ERROR_DEVICE_LOST if lost else ze_result_t.ZE_RESULT_ERROR_UNKNOWN


@checked
def zeFenceCreate(
    hCommandQueue: ze_command_queue_handle_t, flags: t.ze_fence_flags_t | int = 0
) -> ze_fence_handle_t:
    """Create a fence, which ZE_FENCE_FLAG_SIGNALED makes signaled from the start.

    Raises:
        ZeError: INVALID_ENUMERATION: unknown flags.
    """
    errors.check_known(flags, t.ze_fence_flags_t)
    return ze_fence_handle_t(hCommandQueue, bool(flags & t.ze_fence_flags_t.ZE_FENCE_FLAG_SIGNALED))


@checked
def zeFenceDestroy(hFence: ze_fence_handle_t) -> None:
    """Destroy a fence."""
    hFence.alive = False


@checked
def zeFenceHostSynchronize(hFence: ze_fence_handle_t, timeout: int = UINT64_MAX) -> None:
    """Wait for a fence, at most ``timeout`` nanoseconds.

    Raises:
        ZeError: NOT_READY: the fence was not submitted, or timeout; DEVICE_LOST,
            OUT_OF_DEVICE_MEMORY, UNKNOWN: the submission failed.
    """
    fence = hFence
    if fence.work is not None:
        fence.queue.wait_for(fence.work, timeout)
    elif not fence.signaled:
        raise errors.not_ready("the fence was not submitted")


@checked
def zeFenceQueryStatus(hFence: ze_fence_handle_t) -> ze_result_t:
    """Return whether a fence is signaled: SUCCESS, NOT_READY, or the submission's error."""
    try:
        zeFenceHostSynchronize(hFence, 0)
    except ZeError as error:
        return ze_result_t(error.code)
    return ze_result_t.ZE_RESULT_SUCCESS


@checked
def zeFenceReset(hFence: ze_fence_handle_t) -> None:
    """Reset a fence to not signaled."""
    hFence.signaled = False  # first: if interrupted in between, the fence still has its work
    hFence.work = None
