"""Copies on a separate queue, in parallel to programs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from driver_layer import ze
from npuw_layer.backends.level_zero_memory import (
    DeviceMemory,
    reported,
)
from npuw_layer.backends.protocols import (
    Memory,
    WeightCopy,
)
from npuw_layer.backends.release import release_with
from npuw_layer.errors import DeviceError


class CopyQueue:
    """The copy queue of the NPU.

    Args:
        context: context of the memory.
        device: the NPU.
    """

    def __init__(self, context: ze.ze_context_handle_t, device: ze.ze_device_handle_t) -> None:
        self.context = context
        self.device = device
        flag = ze.ze_command_queue_group_property_flags_t
        groups = ze.zeDeviceGetCommandQueueGroupProperties(device)
        (self.ordinal,) = (
            ordinal
            for ordinal, group in enumerate(groups)
            if group.flags == flag.ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY
        )
        desc = ze.ze_command_queue_desc_t(ordinal=self.ordinal)
        self.queue = ze.zeCommandQueueCreate(context, device, desc)


class RecordedCopies:
    """A command list of copies, and the event that signals their end.

    Satisfies ``protocols.CopyProgram``.

    Args:
        queue: the queue of the copies.
        spans: the bytes to copy.

    Raises:
        DeviceError: a span is not in memory of this device.
    """

    def __init__(self, queue: CopyQueue, spans: Sequence[WeightCopy]) -> None:
        self._queue = queue
        self._spans = tuple(spans)  # keeps the memory alive while copies may run
        desc = ze.ze_command_list_desc_t(commandQueueGroupOrdinal=queue.ordinal)
        with reported("recording copies"):
            visible = ze.ze_event_pool_flags_t.ZE_EVENT_POOL_FLAG_HOST_VISIBLE
            of_one = ze.ze_event_pool_desc_t(1, visible)
            pool = ze.zeEventPoolCreate(queue.context, of_one, [queue.device])
            host = ze.ze_event_scope_flags_t.ZE_EVENT_SCOPE_FLAG_HOST
            self._done = ze.zeEventCreate(pool, ze.ze_event_desc_t(0, signal=host, wait=host))
            self._commands = ze.zeCommandListCreate(queue.context, queue.device, desc)
            for span in spans:
                target = _address(span.target) + span.target_offset
                source = _address(span.source) + span.source_offset
                ze.zeCommandListAppendMemoryCopy(self._commands, target, source, span.nbytes)
            ze.zeCommandListAppendSignalEvent(self._commands, self._done)
            ze.zeCommandListClose(self._commands)
        release_with(self, partial(ze.zeCommandListDestroy, self._commands))

    def start(self) -> None:
        """Start the copies.

        Raises:
            DeviceError: the driver rejects them.
        """
        with reported("copying"):
            ze.zeEventHostReset(self._done)
            ze.zeCommandQueueExecuteCommandLists(self._queue.queue, [self._commands])

    def wait(self) -> None:
        """Wait until all bytes are copied.

        Raises:
            DeviceError: a copy failed.
        """
        with reported("copying"):
            ze.zeEventHostSynchronize(self._done)


def _address(memory: Memory) -> int:
    if not isinstance(memory, DeviceMemory):
        raise DeviceError("a copy's source or target is not memory of this device")
    return memory.address
