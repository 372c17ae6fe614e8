"""Checks of a queue's priority and options, and the rank of its work.

Source: docs/reference/level_zero.md#queues, docs/reference/level_zero.md#command-queue-extension.
"""

from __future__ import annotations

import logging

from driver_layer.ze import errors
from driver_layer.ze import queue_types as t
from driver_layer.ze.result import ze_result_t

_SYNCHRONOUS = t.ze_command_queue_mode_t.ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS
_TURBO, _DEVICE_SYNC = t.ze_npu_command_queue_option_t
_NORMAL = t.ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_NORMAL
_DEFAULT = t.ze_command_queue_workload_type_t.ZE_WORKLOAD_TYPE_DEFAULT

PRIORITIES = {
    t.ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH: -1,
    _NORMAL: 0,
    t.ze_command_queue_priority_t.ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW: 1,
}
"""Ranks of work by the priority of its queue, the most urgent first."""
_BACKGROUND = len(PRIORITIES)
"""Rank added to background work, which makes it less urgent than all other work."""

_LOG = logging.getLogger(__name__)

_COPIES = "a queue that only copies never waits for the engines: priority and type have no effect"


def check_choices(desc: t.ze_command_queue_desc_t) -> None:
    """Check a queue's descriptor.

    Turbo is accepted without effect, with a line in the log: the simulated device has one clock,
    and waits are as short as possible.

    Raises:
        ZeError: INVALID_ENUMERATION: unknown priority or options, or DEVICE_SYNC for a synchronous
            queue; UNSUPPORTED_FEATURE: a priority of a copy queue.
    """
    wrong = ze_result_t.ZE_RESULT_ERROR_INVALID_ENUMERATION
    unsupported = ze_result_t.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
    if desc.priority not in PRIORITIES:
        raise errors.failed(wrong, f"unknown priority {desc.priority}")
    if desc.ordinal and desc.priority != _NORMAL:
        raise errors.failed(unsupported, _COPIES)
    options = desc.pNext.options if desc.pNext is not None else 0
    errors.check_known(options, t.ze_npu_command_queue_option_t)
    if options & _TURBO:
        _LOG.info("turbo of a queue has no effect: the simulated device has one clock")
    if options & _DEVICE_SYNC and desc.mode == _SYNCHRONOUS:
        message = "DEVICE_SYNC orders submissions; a synchronous queue waits for each one anyway"
        raise errors.failed(wrong, message)


def rank_of(
    desc: t.ze_command_queue_desc_t, workload: t.ze_command_queue_workload_type_t = _DEFAULT
) -> int:
    """Return the rank of a queue's work for ``npu.turns``.

    Raises:
        ZeError: UNSUPPORTED_FEATURE: a workload type was set for a queue that only copies.
    """
    if desc.ordinal and workload != _DEFAULT:
        raise errors.unsupported_feature(_COPIES)
    return PRIORITIES[desc.priority] + _BACKGROUND * workload
