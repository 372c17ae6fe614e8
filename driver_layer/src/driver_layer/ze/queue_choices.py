"""What a queue may be asked for, and how urgent that makes its work.

What has no effect on the simulated device is refused: it would be believed.
"""

from __future__ import annotations

from driver_layer.ze import queue_types as t
from driver_layer.ze.result import check_known, failed, ze_result_t

_SYNCHRONOUS = t.ze_command_queue_mode_t.ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS
_TURBO = t.ze_npu_command_queue_option_t.ZE_NPU_COMMAND_QUEUE_OPTION_TURBO
_NORMAL = t.ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_NORMAL
_DEFAULT = t.ze_command_queue_workload_type_t.ZE_WORKLOAD_TYPE_DEFAULT

_RANKS = {
    t.ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH: -1,
    _NORMAL: 0,
    t.ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW: 1,
}
_BACKGROUND = len(_RANKS)
"""How much less urgent all work in the background is."""

_COPIES = "a queue that only copies waits for no engines: nothing there is more urgent than another"


def check_choices(desc: t.ze_command_queue_desc_t) -> None:
    """See that a queue can be what it is asked to be.

    Raises:
        ZeError: INVALID_ENUMERATION: unknown priority or options, or DEVICE_SYNC of a synchronous
            queue; UNSUPPORTED_FEATURE: turbo, or a priority of copies.
    """
    wrong = ze_result_t.ZE_RESULT_ERROR_INVALID_ENUMERATION
    unsupported = ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
    if desc.priority not in _RANKS:
        raise failed(wrong, f"no priority {desc.priority}")
    if desc.ordinal and desc.priority != _NORMAL:
        raise failed(unsupported, _COPIES)
    options = desc.pNext.options if desc.pNext is not None else 0
    check_known(options, t.ze_npu_command_queue_option_t)
    if options & _TURBO:
        message = "turbo: the simulated device has one clock, and waits are as short as they can be"
        raise failed(unsupported, message)
    if options and desc.mode is _SYNCHRONOUS:
        message = "DEVICE_SYNC orders submissions on the device; a synchronous queue waits for each"
        raise failed(wrong, message)


def rank_of(
    desc: t.ze_command_queue_desc_t, workload: t.ze_command_queue_workload_type_t = _DEFAULT
) -> int:
    """Give how urgent a queue's work is, as ``npu.turns`` counts.

    Raises:
        ZeError: UNSUPPORTED_FEATURE: it only copies, and is to do so in the background.
    """
    if desc.ordinal and workload != _DEFAULT:
        raise failed(ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, _COPIES)
    return _RANKS[desc.priority] + _BACKGROUND * workload
