"""Verification of DPU workloads before they run.

A verified workload accesses only its tile's CMX workspace, and needs memory in proportion to it.

Source: the rules of ``abi.workloads``.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from driver_layer.abi import tasks
from driver_layer.abi.layout import RecordArray, field_offset
from driver_layer.abi.platforms import CMX_WORKSPACE_OFFSET, Platform
from driver_layer.abi.workloads import find_problem
from driver_layer.errors import WorkloadError
from driver_layer.loader.lists import read_list
from driver_layer.loader.ops import described
from driver_layer.loader.read import Blob
from driver_layer.npu.memory import AddressSpace
from driver_layer.npu.program import queue_name


def verify_workloads(
    memory: AddressSpace, root: RecordArray, platform: Platform, blob: Blob
) -> None:
    """Verify all DPU workloads of a loaded mapped inference.

    Args:
        memory: the memory that it was loaded to.
        root: its relocated MAPPED_INFERENCE record.
        platform: the device.
        blob: the blob, which names the operations of tasks.

    Raises:
        WorkloadError: a workload breaks a rule, or is not in memory; the message names task,
            operation and address.
    """
    lists = [
        read_list(memory, reference, tasks.DPU_INVARIANT, partial(_error, tile, 0))
        for tile, reference in enumerate(root["invariants"])
    ]
    counts = [len(invariants) for invariants in lists]
    room = range(CMX_WORKSPACE_OFFSET, CMX_WORKSPACE_OFFSET + platform.workspace_bytes)
    tiles = np.repeat(np.arange(len(lists)), counts)
    # As bytes: numpy copies records field by field.
    joined = np.concatenate([invariants.view(np.uint8) for invariants in lists])
    registers = joined.view(tasks.DPU_INVARIANT)["registers"]
    problem = find_problem(registers, tiles, room) if len(registers) else None
    if problem is None:
        return
    tile = int(tiles[problem.workload])
    index = problem.workload - sum(counts[:tile])
    task = described(blob, queue_name("dpu", tile), index)
    where = "" if problem.address is None else f" at address {problem.address:#x}"
    raise _error(tile, index, f"{task}: {problem.message}{where}")


def _error(tile: int, index: int, message: str) -> WorkloadError:
    at = index * tasks.DPU_INVARIANT.itemsize + field_offset(tasks.DPU_INVARIANT, "registers")
    return WorkloadError(message, f"task.dpu.invariant.{tile}.0", at)
