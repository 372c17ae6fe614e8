"""Task lists of a loaded blob, in memory that the device cannot write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from driver_layer.abi.layout import Record, RecordArray
from driver_layer.errors import BlobError, DeviceFault
from driver_layer.npu.memory import AddressSpace, Bytes

Error = Callable[[str], BlobError]
"""Makes the error of a problem."""


def read_list(memory: AddressSpace, reference: Any, kind: Record, error: Error) -> RecordArray:
    """Return the records of a TASK_REFERENCE; raises as ``fixed_bytes``."""
    count = int(reference["count"])
    if not count:
        return np.zeros(0, kind)
    content = fixed_bytes(memory, int(reference["address"]), count * kind.itemsize, error)
    return content.view(kind)


def fixed_bytes(memory: AddressSpace, address: int, size: int, error: Error) -> Bytes:
    """Return read-only bytes, so that the verified bytes are the ones that run.

    Raises:
        BlobError: the bytes are not mapped, or the device may write them.
    """
    try:
        content = memory.view(address, size)
    except DeviceFault as fault:
        raise error(f"an address is outside the blob's memory: {fault}") from None
    home = memory.find(address)
    if home is None or home.writable:
        raise error(f"{address:#x} is in memory that the device may write")
    return content
