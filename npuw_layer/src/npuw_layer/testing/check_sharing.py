"""Checks of shared memory of a device, as ``npuw_layer.weights.sharing`` relies on it.

``check_sharing_device(make)`` needs no test framework; it raises AssertionError with the problem.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from npuw_layer.backends.protocols import SharingDevice

NBYTES = 10_000


def check_sharing_device(make: Callable[[], SharingDevice]) -> None:
    """Run all checks, each on new devices.

    Raises:
        AssertionError: the device violates ``protocols.SharingDevice``.
    """
    for check in SHARING_CHECKS:
        check(make)


def check_another_device_sees_exported_memory(make: Callable[[], SharingDevice]) -> None:
    """Check that writes are visible through the descriptor, in place."""
    one, two = make(), make()
    memory = one.allocate_shared(NBYTES)
    assert not memory.data[:NBYTES].any(), "memory is not zeroed"
    memory.data[:] = 3
    descriptor = one.export(memory)
    seen = two.attach(descriptor, NBYTES)
    os.close(descriptor)
    assert (seen.data[:NBYTES] == 3).all(), "the attached memory has other bytes"
    memory.data[7] = 4
    assert seen.data[7] == 4, "the attached memory is a copy"
    memory.free()
    assert seen.data[7] == 4, "the attached memory was freed with the exporting device"
    seen.free()


def check_attached_memory_is_only_read(make: Callable[[], SharingDevice]) -> None:
    """Check that attached memory is read-only."""
    device = make()
    memory = device.allocate_shared(NBYTES)
    descriptor = device.export(memory)
    seen = device.attach(descriptor, NBYTES)
    os.close(descriptor)
    assert not seen.data.flags.writeable, "attached memory can be written"


def check_a_descriptor_holds_the_memory(make: Callable[[], SharingDevice]) -> None:
    """Check that a descriptor keeps the memory alive after it was freed by its allocator."""
    device = make()
    memory = device.allocate_shared(NBYTES)
    memory.data[:] = np.arange(NBYTES, dtype=np.uint16).view(np.uint8)[:NBYTES]
    expected = memory.data[:NBYTES].copy()
    descriptor = device.export(memory)
    memory.free()
    del memory
    seen = make().attach(descriptor, NBYTES)
    os.close(descriptor)
    assert np.array_equal(seen.data[:NBYTES], expected), "the descriptor's memory has other bytes"


def check_what_is_no_such_memory_is_refused(make: Callable[[], SharingDevice]) -> None:
    """Check that other descriptors are rejected with RuntimeErrors."""
    device = make()
    memory = device.allocate_shared(NBYTES)
    descriptor = device.export(memory)
    null = os.open(os.devnull, os.O_RDONLY)
    for what, nbytes in ((descriptor, NBYTES << 10), (null, NBYTES), (-1, NBYTES)):
        try:
            device.attach(what, nbytes)
        except RuntimeError:
            continue
        raise AssertionError(f"{nbytes} bytes of descriptor {what} were attached")
    os.close(descriptor)
    os.close(null)


SHARING_CHECKS = (
    check_another_device_sees_exported_memory,
    check_attached_memory_is_only_read,
    check_a_descriptor_holds_the_memory,
    check_what_is_no_such_memory_is_refused,
)
"""All checks of a device whose memory can be shared."""
