"""Events, by which command lists on different queues and the host wait for each other.

A wait ends when the event is signaled. It fails, and waits for its command list fail with
DEVICE_LOST, if the event can no longer be signaled: the list that was to signal it failed before,
the event was destroyed, or the process ends.

Source: Level Zero core specification 1.17; states of the NPU driver,
docs/reference/level_zero.md#events-and-fences.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import NoReturn
from weakref import WeakValueDictionary

from driver_layer.errors import DeviceFault, DriverFault
from driver_layer.npu.doorbell import Doorbell
from driver_layer.ze import errors
from driver_layer.ze.calls import Handle, checked
from driver_layer.ze.context import check_device, ze_context_handle_t
from driver_layer.ze.driver import ze_device_handle_t
from driver_layer.ze.result import ze_result_t

UINT64_MAX = (1 << 64) - 1
"""Timeout that never ends."""


def seconds_of(timeout: int) -> float | None:
    """Convert a timeout in nanoseconds to seconds for Python's waits; None means no timeout."""
    return None if timeout >= UINT64_MAX else min(timeout / 1e9, threading.TIMEOUT_MAX)


class ze_event_pool_flags_t(IntFlag):
    """Visibility of a pool's events, and timestamps."""

    ZE_EVENT_POOL_FLAG_HOST_VISIBLE = 1
    ZE_EVENT_POOL_FLAG_IPC = 2
    ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP = 4
    ZE_EVENT_POOL_FLAG_KERNEL_MAPPED_TIMESTAMP = 8


class ze_event_scope_flags_t(IntFlag):
    """Caches that a signal or a wait flushes; without effect here, as memory is coherent."""

    ZE_EVENT_SCOPE_FLAG_SUBDEVICE = 1
    ZE_EVENT_SCOPE_FLAG_DEVICE = 2
    ZE_EVENT_SCOPE_FLAG_HOST = 4


@dataclass(frozen=True, slots=True)
class ze_event_pool_desc_t:
    """Descriptor of a pool with room for ``count`` events; all events are visible to the host."""

    count: int
    flags: ze_event_pool_flags_t | int = 0


@dataclass(frozen=True, slots=True)
class ze_event_desc_t:
    """Descriptor of an event, at ``index`` of its pool."""

    index: int
    signal: ze_event_scope_flags_t | int = 0
    wait: ze_event_scope_flags_t | int = 0


class EventState(IntEnum):
    """Latest state of an event, with the public driver's numbers."""

    INITIAL = 0
    DEVICE_RESET = 1
    HOST_RESET = 2
    DEVICE_SIGNAL = 4
    HOST_SIGNAL = 5


class ze_event_pool_handle_t(Handle):
    """A pool of events."""

    def __init__(self, context: ze_context_handle_t, count: int) -> None:
        super().__init__()
        self.context = context
        self.count = count
        self.events: WeakValueDictionary[int, ze_event_handle_t] = WeakValueDictionary()
        """Living events by index; weak, so an event whose creation was interrupted disappears."""


class ze_event_handle_t(Handle):
    """An event, signaled or not."""

    def __init__(self, pool: ze_event_pool_handle_t, index: int) -> None:
        super().__init__()
        self.pool = pool
        self.index = index
        self._became: EventState | DriverFault = EventState.INITIAL

    @property
    def context(self) -> ze_context_handle_t:
        """Context of the event."""
        return self.pool.context

    @property
    def signaled(self) -> bool:
        """True if the event is signaled, so that waits end immediately."""
        return self._became in (EventState.DEVICE_SIGNAL, EventState.HOST_SIGNAL)

    def become(self, state: EventState) -> None:
        """Signal or reset the event."""

        def change() -> None:
            self._became = state

        self._doorbell.ring(change)

    def abandon(self, fault: DriverFault) -> None:
        """Make all waits fail, as the command that was to signal the event failed."""

        def change() -> None:
            if not self.signaled:
                self._became = fault

        self._doorbell.ring(change)

    def destroy(self) -> None:
        """Destroy the event and make all waits fail."""

        def change() -> None:
            self.alive = False

        self._doorbell.ring(change)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the event is signaled or a timeout; return whether it is signaled.

        Raises:
            DeviceFault: the event can no longer be signaled.
        """
        faults: list[str] = []

        def is_decided() -> bool:
            # The doorbell's lock is held here; after the wait, others may reset the event.
            if self.signaled:
                return True
            if isinstance(self._became, DriverFault):
                faults.append(f"event {self.index} was not signaled: {self._became}")
            elif not self.alive:
                faults.append(f"event {self.index} was destroyed during a wait for it")
            return bool(faults)

        decided = self._doorbell.wait(is_decided, seconds)
        if faults:
            raise DeviceFault(faults[0])
        return decided

    @property
    def _doorbell(self) -> Doorbell:
        return self.context.device.npu.doorbell


@checked
def zeEventPoolCreate(
    hContext: ze_context_handle_t,
    desc: ze_event_pool_desc_t,
    phDevices: Sequence[ze_device_handle_t] = (),
) -> ze_event_pool_handle_t:
    """Create a pool of events.

    Raises:
        ZeError: INVALID_SIZE: the count is not positive; INVALID_ENUMERATION: unknown flags;
            UNSUPPORTED_ENUMERATION: the flags request timestamps or sharing with processes;
            INVALID_ARGUMENT: a device is not the context's.
    """
    for device in phDevices:
        check_device(hContext, device)
    if desc.count <= 0:
        raise errors.invalid_size(f"count {desc.count}: a pool must have at least one event")
    errors.check_known(desc.flags, ze_event_pool_flags_t)
    if desc.flags & ~ze_event_pool_flags_t.ZE_EVENT_POOL_FLAG_HOST_VISIBLE:
        message = f"{desc.flags!r}: timestamps and events of other processes are not supported"
        raise errors.unsupported_enumeration(message)
    return ze_event_pool_handle_t(hContext, desc.count)


@checked
def zeEventPoolDestroy(hEventPool: ze_event_pool_handle_t) -> None:
    """Destroy a pool.

    Raises:
        ZeError: HANDLE_OBJECT_IN_USE: the pool still has events.
    """
    pool = hEventPool
    if pool.events:
        message = f"the pool still has {len(pool.events)} events; destroy them first"
        raise errors.handle_object_in_use(message)
    pool.alive = False


@checked
def zeEventCreate(hEventPool: ze_event_pool_handle_t, desc: ze_event_desc_t) -> ze_event_handle_t:
    """Create an event, not signaled.

    Raises:
        ZeError: INVALID_ARGUMENT: the index is out of range or in use; INVALID_ENUMERATION: unknown
            scopes.
    """
    pool = hEventPool
    errors.check_known(desc.signal | desc.wait, ze_event_scope_flags_t)
    if not 0 <= desc.index < pool.count or desc.index in pool.events:
        message = f"index {desc.index} of a pool of {pool.count} events is out of range or in use"
        raise errors.invalid_argument(message)
    event = ze_event_handle_t(pool, desc.index)
    pool.events[desc.index] = event
    return event


@checked
def zeEventDestroy(hEvent: ze_event_handle_t) -> None:
    """Destroy an event; a command list that waits for it fails."""
    event = hEvent
    if event.pool.events.get(event.index) is event:  # an interrupted call may be repeated
        del event.pool.events[event.index]
    event.destroy()


@checked
def zeEventHostSignal(hEvent: ze_event_handle_t) -> None:
    """Signal an event."""
    hEvent.become(EventState.HOST_SIGNAL)


@checked
def zeEventHostReset(hEvent: ze_event_handle_t) -> None:
    """Reset an event to not signaled."""
    hEvent.become(EventState.HOST_RESET)


@checked
def zeEventQueryStatus(hEvent: ze_event_handle_t) -> ze_result_t:
    """Return whether an event is signaled: SUCCESS, NOT_READY or DEVICE_LOST."""
    try:
        signaled = hEvent.wait(0)
    except DeviceFault:
        return ze_result_t.ZE_RESULT_ERROR_DEVICE_LOST
    return ze_result_t.ZE_RESULT_SUCCESS if signaled else ze_result_t.ZE_RESULT_NOT_READY


@checked
def zeEventHostSynchronize(hEvent: ze_event_handle_t, timeout: int = UINT64_MAX) -> None:
    """Wait for an event, at most ``timeout`` nanoseconds.

    Raises:
        ZeError: NOT_READY: timeout; DEVICE_LOST: the event can no longer be signaled;
            ``__cause__`` has the reason.
    """
    with errors.failing_as({DeviceFault: ze_result_t.ZE_RESULT_ERROR_DEVICE_LOST}):
        signaled = hEvent.wait(seconds_of(timeout))
    if not signaled:
        raise errors.not_ready("the event is not signaled")


@checked
def zeEventQueryKernelTimestamp(hEvent: ze_event_handle_t) -> NoReturn:
    """Reject the query, as the public driver does: events have no time stamps.

    Raises:
        ZeError: UNSUPPORTED_FEATURE.
    """
    message = "events have no time stamps; record zeCommandListAppendWriteGlobalTimestamp instead"
    raise errors.unsupported_feature(message)
