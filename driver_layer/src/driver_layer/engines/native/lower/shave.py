"""Invocations as operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from driver_layer.abi.dtypes import BY_CODE
from driver_layer.abi.shave import KERNEL_ARGS, WINDOW, Access as WindowAccess
from driver_layer.engines.native.lower.operations import Check, Group
from driver_layer.engines.native.lower.template import NO_WORD, Access, Dim, Slot, Template, slot
from driver_layer.npu.program import ShaveWork


def shave_operations(work: ShaveWork, check: Check) -> list[Group]:
    """Group the invocations of a queue.

    Args:
        work: the queue's.
        check: lets the reference engine judge a task by its index.
    """
    members: dict[tuple[int, bytes], list[int]] = {}
    for index, key in enumerate(zip(work.program_of, work.arguments, strict=True)):
        members.setdefault(key, []).append(index)
    groups: list[Group] = []
    for (_, arguments), tasks in members.items():
        check(tasks[0])
        head = np.frombuffer(arguments, KERNEL_ARGS, 1)[0]
        records = np.frombuffer(arguments, WINDOW, int(head["window_count"]), KERNEL_ARGS.itemsize)
        slots = tuple(_pinned(record, head["grid"].tolist()) for record in records)
        addresses = np.tile(records["address"].astype(np.int64), (len(tasks), 1))
        groups.append(Group(Template(None, (), slots), np.array(tasks), addresses))
    return groups


def _pinned(record: Any, grid: Sequence[int]) -> Slot:
    element = BY_CODE[int(record["type"])].storage.itemsize
    dims = [
        Dim(count, int(stride), NO_WORD)
        for count, stride in zip(grid, record["strides"], strict=True)
    ]
    dims.append(Dim(int(record["cols"]), int(record["col_stride"]), NO_WORD))
    access = Access(0)
    if record["access"] & WindowAccess.READ:
        access |= Access.READ
    if record["access"] & WindowAccess.WRITE:
        access |= Access.WRITE
    return slot(NO_WORD, access, dims, element)
