"""Commands that order others: barriers, events and time stamps.

Source: Level Zero core specification 1.17; docs/reference/level_zero.md#command-lists.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driver_layer.ze import errors
from driver_layer.ze.calls import checked
from driver_layer.ze.command_list import Events, nothing, ze_command_list_handle_t
from driver_layer.ze.context import Pointer
from driver_layer.ze.event import EventState, ze_event_handle_t


@checked
def zeCommandListAppendBarrier(
    hCommandList: ze_command_list_handle_t,
    hSignalEvent: ze_event_handle_t | None = None,
    phWaitEvents: Events = (),
) -> None:
    """Record a barrier; commands run in order anyway, so it only waits for events."""
    hCommandList.append(nothing, hSignalEvent, phWaitEvents)


@checked
def zeCommandListAppendMemoryRangesBarrier(
    hCommandList: ze_command_list_handle_t,
    pRangeSizes: Sequence[int],
    pRanges: Sequence[Pointer],
    hSignalEvent: ze_event_handle_t | None = None,
    phWaitEvents: Events = (),
) -> None:
    """Record a barrier for ranges of memory; memory is coherent, so it only waits for events.

    Raises:
        ZeError: INVALID_SIZE: the numbers of ranges and sizes differ; INVALID_ARGUMENT: a range is
            not memory of the list's context.
    """
    if len(pRangeSizes) != len(pRanges):
        raise errors.invalid_size(f"{len(pRanges)} ranges with {len(pRangeSizes)} sizes")
    for pointer, size in zip(pRanges, pRangeSizes, strict=True):
        hCommandList.context.bytes_at(pointer, size)
    hCommandList.append(nothing, hSignalEvent, phWaitEvents)


@checked
def zeCommandListAppendSignalEvent(
    hCommandList: ze_command_list_handle_t, hEvent: ze_event_handle_t
) -> None:
    """Record the signal of an event after all earlier commands."""
    hCommandList.append(nothing, hEvent)


@checked
def zeCommandListAppendWaitOnEvents(
    hCommandList: ze_command_list_handle_t, phEvents: Events
) -> None:
    """Record a wait of the following commands for events.

    Raises:
        ZeError: INVALID_SIZE: no event is given.
    """
    if not phEvents:
        raise errors.invalid_size("no event given")
    hCommandList.append(nothing, waits=phEvents)


@checked
def zeCommandListAppendEventReset(
    hCommandList: ze_command_list_handle_t, hEvent: ze_event_handle_t
) -> None:
    """Record the reset of an event."""
    hCommandList.check_event(hEvent)
    hCommandList.append(lambda: hEvent.become(EventState.DEVICE_RESET))


@checked
def zeCommandListAppendWriteGlobalTimestamp(
    hCommandList: ze_command_list_handle_t,
    dstptr: Pointer,
    hSignalEvent: ze_event_handle_t | None = None,
    phWaitEvents: Events = (),
) -> None:
    """Record the write of the device's time, in ticks as u64, after all earlier commands.

    Raises:
        ZeError: INVALID_NULL_POINTER, INVALID_ARGUMENT: not memory of the list's context, or it is
            read-only; INVALID_SYNCHRONIZATION_OBJECT: an event belongs to another context.
    """
    target = hCommandList.context.bytes_at(dstptr, np.uint64().nbytes, write=True)
    npu = hCommandList.context.device.npu

    def write() -> None:
        target[:] = np.array([npu.timestamp()], "<u8").view(np.uint8)

    hCommandList.append(write, hSignalEvent, phWaitEvents)
