"""Copies of remote memory: by the host where it sees it, else by the device."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import numpy as np

from driver_layer import ze
from npuw_layer.backends.level_zero_lists import destroy_list
from npuw_layer.backends.level_zero_memory import DeviceMemory, reported
from npuw_layer.backends.protocols import Array
from npuw_layer.remote.memory import Piece


def fetch_bytes(source: Piece, nbytes: int) -> Array:
    """Give a tensor's bytes: a view where the host sees them, else a copy."""
    if source.memory.host_visible:
        return source.memory.data[source.offset : source.offset + nbytes]
    with _staging(source, nbytes) as staging:
        copy_bytes(staging, source, nbytes)
        return staging.memory.data[:nbytes].copy()


def store_bytes(target: Piece, values: Array) -> None:
    """Write a contiguous array's bytes."""
    raw = values.reshape(-1).view(np.uint8)
    if target.memory.host_visible:
        target.memory.data[target.offset : target.offset + raw.size] = raw
        return
    with _staging(target, raw.size) as staging:
        staging.memory.data[: raw.size] = raw
        copy_bytes(target, staging, raw.size)


def copy_bytes(target: Piece, source: Piece, nbytes: int) -> None:
    """Let the device copy within a context, and wait.

    Raises:
        DeviceError: Level Zero refuses.
    """
    context = target.memory.context
    with reported(f"copying {nbytes} bytes"), ExitStack() as made:
        commands = ze.zeCommandListCreate(context, context.device)
        made.callback(destroy_list, commands)
        ze.zeCommandListAppendMemoryCopy(commands, target.address, source.address, nbytes)
        ze.zeCommandListClose(commands)
        queue = ze.zeCommandQueueCreate(context, context.device)
        made.callback(ze.zeCommandQueueDestroy, queue)
        ze.zeCommandQueueExecuteCommandLists(queue, [commands])
        ze.zeCommandQueueSynchronize(queue)


@contextmanager
def _staging(like: Piece, nbytes: int) -> Generator[Piece, None, None]:
    """Memory that host and device see, for a while."""
    context = like.memory.context
    with reported(f"zeMemAllocHost of {nbytes} bytes"):
        staging = Piece(DeviceMemory(context, ze.zeMemAllocHost(context, nbytes)))
    try:
        yield staging
    finally:
        staging.release()
