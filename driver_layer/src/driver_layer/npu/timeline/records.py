"""A timeline as the records that profiling writes to memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driver_layer.abi.layer_map import QUEUE_KINDS, TASK_TIME
from driver_layer.abi.layout import RecordArray
from driver_layer.npu.program import queue_name
from driver_layer.npu.timeline.simulate import TaskTime

_MOST_QUEUES = 256
"""Limit of the queues of one kind, whose number is stored in a byte."""

_QUEUES = {
    queue_name(kind, number): (code, number)
    for code, kind in enumerate(QUEUE_KINDS)
    for number in range(_MOST_QUEUES)
}


def task_records(times: Sequence[TaskTime]) -> RecordArray:
    """Return the tasks of a timeline as TASK_TIME records, with times rounded to nanoseconds."""
    records = np.zeros(len(times), TASK_TIME)
    queues = np.array([_QUEUES[task.queue] for task in times]).reshape(-1, 2)
    records["kind"], records["number"] = queues.T
    records["index"] = [task.index for task in times]
    for field in ("begin_ns", "end_ns", "alone_ns"):
        records[field] = np.rint([getattr(task, field) for task in times])
    return records
