"""Commands that copy and fill memory, and that order others: barriers, events, time stamps.

Source: Level Zero core specification 1.17; docs/reference/level_zero.md#command-lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from driver_layer.npu.memory import Bytes
from driver_layer.ze import errors
from driver_layer.ze.calls import checked
from driver_layer.ze.command_list import Events, nothing, ze_command_list_handle_t
from driver_layer.ze.context import Pointer, ze_context_handle_t
from driver_layer.ze.device import MAX_PATTERN
from driver_layer.ze.event import EventState, ze_event_handle_t


@dataclass(frozen=True, slots=True)
class ze_copy_region_t:
    """A region of memory: origin and width in bytes, the others in rows and slices."""

    originX: int
    originY: int
    originZ: int
    width: int
    height: int
    depth: int


@checked
def zeCommandListAppendMemoryCopy(
    hCommandList: ze_command_list_handle_t,
    dstptr: Pointer,
    srcptr: Pointer,
    size: int,
    hSignalEvent: ze_event_handle_t | None = None,
    phWaitEvents: Events = (),
) -> None:
    """Record a copy of ``size`` bytes that waits for events and signals one, if given.

    Raises:
        ZeError: INVALID_NULL_POINTER, INVALID_ARGUMENT: not memory of the list's context, or the
            target is read-only; INVALID_SYNCHRONIZATION_OBJECT: an event belongs to another
            context.
    """
    zeCommandListAppendMemoryCopyFromContext(
        hCommandList, dstptr, hCommandList.context, srcptr, size, hSignalEvent, phWaitEvents
    )


@checked
def zeCommandListAppendMemoryCopyFromContext(
    hCommandList: ze_command_list_handle_t,
    dstptr: Pointer,
    hContextSrc: ze_context_handle_t,
    srcptr: Pointer,
    size: int,
    hSignalEvent: ze_event_handle_t | None = None,
    phWaitEvents: Events = (),
) -> None:
    """Record a copy from memory of another context; raises as zeCommandListAppendMemoryCopy."""
    target = hCommandList.context.bytes_at(dstptr, size, write=True)
    source = hContextSrc.bytes_at(srcptr, size)
    copy = hContextSrc.bounced(partial(np.copyto, target, source), srcptr)
    hCommandList.append(hCommandList.context.bounced(copy, dstptr), hSignalEvent, phWaitEvents)


@checked
def zeCommandListAppendMemoryCopyRegion(
    hCommandList: ze_command_list_handle_t,
    dstptr: Pointer,
    dstRegion: ze_copy_region_t,
    dstPitch: int,
    dstSlicePitch: int,
    srcptr: Pointer,
    srcRegion: ze_copy_region_t,
    srcPitch: int,
    srcSlicePitch: int,
    hSignalEvent: ze_event_handle_t | None = None,
    phWaitEvents: Events = (),
) -> None:
    """Record a copy of rows; the pitches are the distances of rows in bytes.

    Raises:
        ZeError: INVALID_SIZE: the regions differ in size or are empty, or a pitch is smaller than
            the width; UNSUPPORTED_FEATURE: the regions have slices; else as
            zeCommandListAppendMemoryCopy.
    """
    _check_regions(dstRegion, srcRegion, dstPitch, srcPitch)
    origins = dstRegion.originZ, srcRegion.originZ
    if dstRegion.depth not in (0, 1) or any((*origins, dstSlicePitch, srcSlicePitch)):
        message = "slices are not supported; copy each slice by a call of its own"
        raise errors.unsupported_feature(message)
    context = hCommandList.context
    target = _rows(context, dstptr, dstRegion, dstPitch, write=True)
    source = _rows(context, srcptr, srcRegion, srcPitch)
    copy = context.bounced(partial(np.copyto, target, source), dstptr, srcptr)
    hCommandList.append(copy, hSignalEvent, phWaitEvents)


def _check_regions(
    target: ze_copy_region_t, source: ze_copy_region_t, dst_pitch: int, src_pitch: int
) -> None:
    """Check two regions and the distances of their rows."""
    sizes = [(each.width, each.height, each.depth) for each in (target, source)]
    if sizes[0] != sizes[1]:
        message = f"regions of {sizes[0]} and {sizes[1]} differ in width, height or depth"
        raise errors.invalid_size(message)
    if target.width <= 0 or target.height <= 0 or min(dst_pitch, src_pitch) < target.width:
        message = f"{target.height} rows of {target.width} bytes, pitches {dst_pitch}, {src_pitch}"
        raise errors.invalid_size(message)


def _rows(
    context: ze_context_handle_t,
    pointer: Pointer,
    region: ze_copy_region_t,
    pitch: int,
    write: bool = False,
) -> Bytes:
    """Return a region's bytes, [height, width], as a view of memory."""
    first = region.originY * pitch + region.originX
    if min(region.originX, region.originY) < 0:
        message = f"the origin ({region.originX}, {region.originY}) is negative"
        raise errors.invalid_argument(message)
    nbytes = (region.height - 1) * pitch + region.width
    data = context.bytes_at(pointer, first + nbytes, write)[first:]
    shape = region.height, region.width
    return np.lib.stride_tricks.as_strided(data, shape, (pitch, 1), writeable=write)


@checked
def zeCommandListAppendMemoryFill(
    hCommandList: ze_command_list_handle_t,
    ptr: Pointer,
    pattern: bytes,
    size: int,
    hSignalEvent: ze_event_handle_t | None = None,
    phWaitEvents: Events = (),
) -> None:
    """Record the fill of ``size`` bytes with a repeated pattern, whose last copy may be cut.

    Raises:
        ZeError: INVALID_SIZE: the pattern's length is not a power of two, or more than
            ``maxMemoryFillPatternSize`` of the queue group; else as
            zeCommandListAppendMemoryCopy.
    """
    length = len(pattern)
    if not length or length & (length - 1) or length > MAX_PATTERN:
        raise errors.invalid_size(f"{size} bytes cannot be filled with a pattern of {length}")
    target = hCommandList.context.bytes_at(ptr, size, write=True)
    repeated = np.resize(np.frombuffer(bytes(pattern), np.uint8), size)
    fill = hCommandList.context.bounced(partial(np.copyto, target, repeated), ptr)
    hCommandList.append(fill, hSignalEvent, phWaitEvents)


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

    hCommandList.append(hCommandList.context.bounced(write, dstptr), hSignalEvent, phWaitEvents)
