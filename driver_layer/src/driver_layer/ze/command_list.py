"""Command lists: commands for the device, recorded once and executed repeatedly.

Source: Level Zero core specification 1.17; docs/reference/level_zero.md#command-lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from driver_layer.npu.stream import Stream
from driver_layer.support.outcome import Outcome
from driver_layer.ze import errors
from driver_layer.ze.calls import Handle, checked
from driver_layer.ze.context import check_device, ze_context_handle_t
from driver_layer.ze.device import QUEUE_GROUPS
from driver_layer.ze.device_types import ze_command_queue_group_property_flags_t
from driver_layer.ze.driver import ze_device_handle_t
from driver_layer.ze.event import EventState, ze_event_handle_t
from driver_layer.ze.graph import GraphExecution

Events = Sequence[ze_event_handle_t]

_COMPUTE = ze_command_queue_group_property_flags_t.ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE


@dataclass(frozen=True, slots=True)
class ze_mutable_command_list_exp_desc_t:
    """Request for a list whose commands can be changed after recording."""

    flags: int = 0


@dataclass(frozen=True, slots=True)
class ze_command_list_desc_t:
    """Descriptor of a list for the queues of a group."""

    commandQueueGroupOrdinal: int = 0
    flags: int = 0
    pNext: ze_mutable_command_list_exp_desc_t | None = None


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a list: waits for events, runs, signals an event."""

    run: Callable[[], object]
    signal: ze_event_handle_t | None
    waits: tuple[ze_event_handle_t, ...]
    execution: GraphExecution | None
    """The inference that the command runs; its arguments can be changed."""

    def __call__(self) -> None:
        """Execute the command.

        Raises:
            DeviceFault: the command failed, or an event that it waits for cannot be signaled.
        """
        for event in self.waits:
            event.wait()
        self.run()
        if self.signal is not None:
            self.signal.become(EventState.DEVICE_SIGNAL)

    def release(self) -> None:
        """Return the command's inference; the list no longer needs it."""
        if self.execution is not None:
            self.execution.release()


def nothing() -> None:
    """Do nothing; the command only waits or signals."""


class ListState(Enum):
    """States of a list: OPEN accepts commands, CLOSED can execute, CHANGED must be closed again."""

    OPEN = "open"
    CHANGED = "changed"
    CLOSED = "closed"


class ze_command_list_handle_t(Handle):
    """A command list.

    =========== ======= ========= ============= ============================
    state       append  close     execute       change commands (if mutable)
    =========== ======= ========= ============= ============================
    OPEN        yes     → CLOSED  UNINITIALIZED yes
    CLOSED      no      no effect yes           → CHANGED
    CHANGED     no      → CLOSED  UNINITIALIZED yes
    =========== ======= ========= ============= ============================

    Reset makes a list in any state OPEN and empty.
    """

    def __init__(self, context: ze_context_handle_t, desc: ze_command_list_desc_t) -> None:
        super().__init__()
        self.context = context
        self.desc = desc
        self.state = ListState.OPEN
        self.commands: list[Command] = []
        self.last: Outcome | Stream | None = None
        """Outcome of the latest submission of the list; the stream instead, if a signal interrupted
        the submission."""

    @property
    def is_mutable(self) -> bool:
        """True if recorded commands can be changed."""
        return self.desc.pNext is not None

    @property
    def computes(self) -> bool:
        """True if the list is for queues that run graphs."""
        return bool(QUEUE_GROUPS[self.desc.commandQueueGroupOrdinal].flags & _COMPUTE)

    def append(
        self,
        run: Callable[[], object],
        signal: ze_event_handle_t | None = None,
        waits: Events = (),
        execution: GraphExecution | None = None,
    ) -> None:
        """Record a command; the arguments are those of ``Command``.

        Raises:
            ZeError: INVALID_ARGUMENT: the list is closed; INVALID_SYNCHRONIZATION_OBJECT: an event
                belongs to another context.
        """
        self.check_open()
        for event in waits if signal is None else (*waits, signal):
            self.check_event(event)
        self._add(Command(run, signal, tuple(waits), execution))

    def _add(self, command: Command) -> None:
        """Add a checked command; immediate lists submit it instead."""
        self.commands.append(command)

    def check_open(self) -> None:
        """Raise ZeError INVALID_ARGUMENT if the list is not open."""
        if self.state is not ListState.OPEN:
            raise errors.invalid_argument("the command list is closed; reset it first")

    def check_event(self, event: ze_event_handle_t) -> None:
        """Raise ZeError INVALID_SYNCHRONIZATION_OBJECT if an event belongs to another context."""
        if event.context is not self.context:
            message = "event and command list belong to different contexts"
            raise errors.invalid_synchronization_object(message)

    @property
    def executing(self) -> bool:
        """True while a submission of the list has not ended."""
        if isinstance(self.last, Stream):
            self.last = self.last.latest()
        return self.last is not None and not self.last.ended

    def check_idle(self) -> None:
        """Raise ZeError HANDLE_OBJECT_IN_USE if the list is executing."""
        if self.executing:
            raise errors.handle_object_in_use("the command list is executing; wait for it first")

    def reset(self) -> None:
        """Remove all commands; raises ZeError as ``check_idle``."""
        self.check_idle()  # else resources in use would be reused
        self.state = ListState.OPEN  # first: a half-emptied list must not execute
        while self.commands:
            self.commands.pop().release()  # released at most once

    def close(self) -> None:
        """Close the list and apply changes of its commands; see zeCommandListClose."""
        for command in self.commands:
            if command.execution is not None:
                command.execution.apply()
        self.state = ListState.CLOSED

    def destroy(self) -> None:
        """Destroy the list; a submission that has not ended keeps its commands until it ends."""
        if self.executing:
            self.commands = []
        else:
            self.reset()
        self.alive = False


@checked
def zeCommandListCreate(
    hContext: ze_context_handle_t,
    hDevice: ze_device_handle_t,
    desc: ze_command_list_desc_t | None = None,
) -> ze_command_list_handle_t:
    """Create an open, empty list.

    Raises:
        ZeError: INVALID_ARGUMENT: the group of queues does not exist, or the device is not the
            context's.
    """
    check_device(hContext, hDevice)
    desc = desc or ze_command_list_desc_t()
    if not 0 <= desc.commandQueueGroupOrdinal < len(QUEUE_GROUPS):
        raise errors.invalid_argument(f"queue group {desc.commandQueueGroupOrdinal} does not exist")
    return ze_command_list_handle_t(hContext, desc)


@checked
def zeCommandListDestroy(hCommandList: ze_command_list_handle_t) -> None:
    """Destroy a list; commands that were submitted still run, as in the public driver."""
    hCommandList.destroy()


@checked
def zeCommandListClose(hCommandList: ze_command_list_handle_t) -> None:
    """Close a list for execution, and apply changes of its commands.

    Raises:
        ZeError: INVALID_ARGUMENT: the memory of a changed argument was freed; UNKNOWN: a relocation
            of the blob cannot be applied; the list then stays open or changed. UNINITIALIZED: the
            list is immediate.
    """
    hCommandList.close()


@checked
def zeCommandListReset(hCommandList: ze_command_list_handle_t) -> None:
    """Empty a list and open it.

    Raises:
        ZeError: HANDLE_OBJECT_IN_USE: the list is executing.
    """
    hCommandList.reset()
