"""Descriptors of queues: priority, workload type and options; their checks, and the rank of work.

Source: Level Zero core specification 1.17 (priorities); NPU command queue extension 1.1,
docs/reference/level_zero.md#command-queue-extension, docs/reference/level_zero.md#queues.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from driver_layer.ze import errors


class ze_command_queue_mode_t(IntEnum):
    """Modes of execution of a queue."""

    ZE_COMMAND_QUEUE_MODE_DEFAULT = 0
    ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS = 1
    ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS = 2


class ze_command_queue_priority_t(IntEnum):
    """Priority of a queue's work relative to that of other queues."""

    ZE_COMMAND_QUEUE_PRIORITY_NORMAL = 0
    ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW = 1
    ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH = 2


class ze_command_queue_workload_type_t(IntEnum):
    """Type of a queue's work: default, or background work, for which no caller waits."""

    ZE_WORKLOAD_TYPE_DEFAULT = 0
    ZE_WORKLOAD_TYPE_BACKGROUND = 1


class ze_command_queue_flags_t(IntFlag):
    """Uses of a queue; without effect, as submissions run in order anyway."""

    NONE = 0
    ZE_COMMAND_QUEUE_FLAG_EXPLICIT_ONLY = 1
    ZE_COMMAND_QUEUE_FLAG_IN_ORDER = 2
    ZE_COMMAND_QUEUE_FLAG_COPY_OFFLOAD_HINT = 4


class ze_npu_command_queue_option_t(IntFlag):
    """Options of a queue."""

    ZE_NPU_COMMAND_QUEUE_OPTION_TURBO = 1
    ZE_NPU_COMMAND_QUEUE_OPTION_DEVICE_SYNC = 2


@dataclass(frozen=True, slots=True)
class ze_command_queue_desc_npu_ext_t:
    """Options of a queue in the extension's first version."""

    turbo: bool = False

    @property
    def options(self) -> ze_npu_command_queue_option_t | int:
        """The options in the form of the extension's second version."""
        return ze_npu_command_queue_option_t.ZE_NPU_COMMAND_QUEUE_OPTION_TURBO if self.turbo else 0


@dataclass(frozen=True, slots=True)
class ze_command_queue_desc_npu_ext_2_t:
    """Options of a queue in the extension's second version."""

    options: ze_npu_command_queue_option_t | int = 0


@dataclass(frozen=True, slots=True)
class ze_command_queue_desc_t:
    """Descriptor of a queue."""

    ordinal: int = 0
    index: int = 0
    mode: ze_command_queue_mode_t = ze_command_queue_mode_t.ZE_COMMAND_QUEUE_MODE_DEFAULT
    priority: ze_command_queue_priority_t = (
        ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_NORMAL
    )
    pNext: ze_command_queue_desc_npu_ext_t | ze_command_queue_desc_npu_ext_2_t | None = None
    flags: ze_command_queue_flags_t | int = ze_command_queue_flags_t.NONE


_SYNCHRONOUS = ze_command_queue_mode_t.ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS
_TURBO, _DEVICE_SYNC = ze_npu_command_queue_option_t
_NORMAL = ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_NORMAL
_DEFAULT = ze_command_queue_workload_type_t.ZE_WORKLOAD_TYPE_DEFAULT

PRIORITIES = {
    ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH: -1,
    _NORMAL: 0,
    ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW: 1,
}
"""Ranks of work by the priority of its queue, the most urgent first."""
_BACKGROUND = len(PRIORITIES)
"""Rank added to background work, which makes it less urgent than all other work."""

_LOG = logging.getLogger(__name__)

_COPIES = "a queue that only copies never waits for the engines: priority and type have no effect"


def check_choices(desc: ze_command_queue_desc_t) -> None:
    """Check a queue's descriptor.

    Turbo is accepted without effect, with a line in the log: the simulated device has one clock,
    and waits are as short as possible.

    Raises:
        ZeError: INVALID_ENUMERATION: unknown options, or DEVICE_SYNC for a synchronous queue;
            UNSUPPORTED_FEATURE: a priority of a copy queue.
    """
    if desc.ordinal and desc.priority != _NORMAL:
        raise errors.unsupported_feature(_COPIES)
    options = desc.pNext.options if desc.pNext is not None else 0
    errors.check_known(options, ze_npu_command_queue_option_t)
    if options & _TURBO:
        _LOG.info("turbo of a queue has no effect: the simulated device has one clock")
    if options & _DEVICE_SYNC and desc.mode == _SYNCHRONOUS:
        message = "DEVICE_SYNC orders submissions; a synchronous queue waits for each one anyway"
        raise errors.invalid_enumeration(message)


def rank_of(
    desc: ze_command_queue_desc_t, workload: ze_command_queue_workload_type_t = _DEFAULT
) -> int:
    """Return the rank of a queue's work for ``npu.turns``.

    Raises:
        ZeError: UNSUPPORTED_FEATURE: a workload type was set for a queue that only copies.
    """
    if desc.ordinal and workload != _DEFAULT:
        raise errors.unsupported_feature(_COPIES)
    return PRIORITIES[desc.priority] + _BACKGROUND * workload
