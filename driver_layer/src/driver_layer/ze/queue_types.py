"""Descriptors of queues: priority, workload type and options.

Source: Level Zero core specification 1.17 (priorities); NPU command queue extension 1.1,
docs/reference/level_zero.md#command-queue-extension, docs/reference/level_zero.md#queues.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag


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
