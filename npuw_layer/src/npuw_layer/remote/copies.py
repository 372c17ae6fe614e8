"""Copies of remote memory: by the host where it sees it, else by the device."""

from __future__ import annotations

import numpy as np

from driver_layer import ze
from npuw_layer.adapters.level_zero_memory import DeviceMemory, reported
from npuw_layer.ports import Array
from npuw_layer.remote.memory import Piece


def fetch_bytes(source: Piece, nbytes: int) -> Array:
    """Give a tensor's bytes: a view where the host sees them, else a copy."""
    if source.memory.host_visible:
        return source.memory.data[source.offset : source.offset + nbytes]
    staging = _staging(source, nbytes)
    copy_bytes(staging, source, nbytes)
    fetched = staging.memory.data[:nbytes].copy()
    staging.release()
    return fetched


def store_bytes(target: Piece, values: Array) -> None:
    """Write a contiguous array's bytes."""
    raw = values.reshape(-1).view(np.uint8)
    if target.memory.host_visible:
        target.memory.data[target.offset : target.offset + raw.size] = raw
        return
    staging = _staging(target, raw.size)
    staging.memory.data[: raw.size] = raw
    copy_bytes(target, staging, raw.size)
    staging.release()


def copy_bytes(target: Piece, source: Piece, nbytes: int) -> None:
    """Let the device copy within a context, and wait.

    Raises:
        DeviceError: Level Zero refuses.
    """
    context = target.memory.context
    with reported(f"copying {nbytes} bytes"):
        commands = ze.zeCommandListCreate(context, context.device)
        ze.zeCommandListAppendMemoryCopy(commands, target.address, source.address, nbytes)
        ze.zeCommandListClose(commands)
        queue = ze.zeCommandQueueCreate(context, context.device)
        ze.zeCommandQueueExecuteCommandLists(queue, [commands])
        ze.zeCommandQueueSynchronize(queue)
        ze.zeCommandListDestroy(commands)
        ze.zeCommandQueueDestroy(queue)


def _staging(like: Piece, nbytes: int) -> Piece:
    context = like.memory.context
    with reported(f"zeMemAllocHost of {nbytes} bytes"):
        return Piece(DeviceMemory(context, ze.zeMemAllocHost(context, nbytes)))
