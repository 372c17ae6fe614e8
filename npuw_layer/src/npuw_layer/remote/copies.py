"""Copies of remote memory: by the host if the memory is host-visible, else by the device."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import numpy as np

from npuw_layer.backends.protocols import Array, ImportsMemory
from npuw_layer.remote.memory import MemoryRange


def fetch_bytes(device: ImportsMemory, source: MemoryRange, nbytes: int) -> Array:
    """Return a tensor's bytes: a view if they are host-visible, else a copy."""
    if source.memory.host_visible:
        return source.memory.data[source.offset : source.offset + nbytes]
    with _staging(device, nbytes) as staging:
        copy_bytes(device, staging, source, nbytes)
        return staging.memory.data[:nbytes].copy()


def store_bytes(device: ImportsMemory, target: MemoryRange, values: Array) -> None:
    """Write a contiguous array's bytes."""
    raw = values.reshape(-1).view(np.uint8)
    if target.memory.host_visible:
        target.memory.data[target.offset : target.offset + raw.size] = raw
        return
    with _staging(device, raw.size) as staging:
        staging.memory.data[: raw.size] = raw
        copy_bytes(device, target, staging, raw.size)


def copy_bytes(
    device: ImportsMemory, target: MemoryRange, source: MemoryRange, nbytes: int
) -> None:
    """Copy within the device's memory space, by the device, and wait.

    Raises:
        DeviceError: the device failed.
    """
    device.copy(target.memory, target.offset, source.memory, source.offset, nbytes)


@contextmanager
def _staging(device: ImportsMemory, nbytes: int) -> Generator[MemoryRange, None, None]:
    """Allocate temporary memory that host and device both access."""
    staging = MemoryRange(device.allocate_remote(nbytes))
    try:
        yield staging
    finally:
        staging.release()
