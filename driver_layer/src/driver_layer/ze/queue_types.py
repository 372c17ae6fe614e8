"""How urgent a queue's work is, and what else may be asked of it.

Source: Level Zero core specification 1.17 (priorities); NPU command queue extension 1.1, fact sheet
elf_driver §5.2, §5.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag


class ze_command_queue_mode_t(IntEnum):
    """How a queue executes."""

    ZE_COMMAND_QUEUE_MODE_DEFAULT = 0
    ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS = 1
    ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS = 2


class ze_command_queue_priority_t(IntEnum):
    """How urgent a queue's work is, beside that of others."""

    ZE_COMMAND_QUEUE_PRIORITY_NORMAL = 0
    ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW = 1
    ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH = 2


class ze_command_queue_workload_type_t(IntEnum):
    """Whether somebody waits for a queue's work."""

    ZE_WORKLOAD_TYPE_DEFAULT = 0
    ZE_WORKLOAD_TYPE_BACKGROUND = 1


class ze_npu_command_queue_option_t(IntFlag):
    """What may be asked of a queue."""

    ZE_NPU_COMMAND_QUEUE_OPTION_TURBO = 1
    ZE_NPU_COMMAND_QUEUE_OPTION_DEVICE_SYNC = 2


@dataclass(frozen=True, slots=True)
class ze_command_queue_desc_npu_ext_t:
    """What is asked of a queue, in the extension's first version."""

    turbo: bool = False

    @property
    def options(self) -> ze_npu_command_queue_option_t | int:
        """The same as the second version has it."""
        return ze_npu_command_queue_option_t.ZE_NPU_COMMAND_QUEUE_OPTION_TURBO if self.turbo else 0


@dataclass(frozen=True, slots=True)
class ze_command_queue_desc_npu_ext_2_t:
    """What is asked of a queue."""

    options: ze_npu_command_queue_option_t | int = 0


@dataclass(frozen=True, slots=True)
class ze_command_queue_desc_t:
    """How a queue is to be made."""

    ordinal: int = 0
    index: int = 0
    mode: ze_command_queue_mode_t = ze_command_queue_mode_t.ZE_COMMAND_QUEUE_MODE_DEFAULT
    priority: ze_command_queue_priority_t = (
        ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_NORMAL
    )
    pNext: ze_command_queue_desc_npu_ext_t | ze_command_queue_desc_npu_ext_2_t | None = None
