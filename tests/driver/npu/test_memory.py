"""The address space: allocations never overlap, and no other memory is accessible."""

from __future__ import annotations

import sys
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.driver.interrupted import interruptions

from driver_layer.abi.platforms import PLATFORMS
from driver_layer.errors import DeviceFault, DriverUsageError, OutOfMemory
from driver_layer.npu.cmx import Cmx
from driver_layer.npu.memory import PAGE_BYTES, AddressSpace, Allocation, MemoryKind

steps = st.lists(
    st.tuples(st.sampled_from(MemoryKind), st.integers(1, 20_000), st.booleans()), max_size=40
)


@given(steps, st.randoms(use_true_random=False))
def test_allocations_never_adjoin(plan, draw) -> None:
    space = AddressSpace()
    living: list[Allocation] = []
    for kind, size, free in plan:
        if free and living:
            space.free(living.pop(draw.randrange(len(living))))
        living.append(space.allocate(size, kind))
    for one in living:
        assert one.address % PAGE_BYTES == 0
        assert one.kind.value.begin <= one.address
        assert one.end <= one.kind.value.end
        assert space.find(one.address) is one
        assert space.find(one.end - 1) is one
        assert space.find(one.end) is None, "a free page follows each allocation"
    assert space.allocated_bytes == sum(one.size for one in living)


@given(st.integers(1, 1 << 23), st.sampled_from(MemoryKind))
def test_memory_has_the_same_page_alignment_on_device_and_host(size, kind) -> None:
    one = AddressSpace().allocate(size, kind)
    assert one.size == size
    assert one.data.ctypes.data % PAGE_BYTES == one.address % PAGE_BYTES == 0


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=lambda platform: platform.name)
def test_tiles_are_separate_and_aligned_to_pages(platform) -> None:
    cmx = Cmx(platform)
    for number, tile in enumerate(cmx.tiles):
        assert tile.ctypes.data % PAGE_BYTES == 0
        tile[:] = number
    for number, tile in enumerate(cmx.tiles):
        assert tile.size == platform.cmx_bytes
        assert (tile == number).all()


def test_an_access_must_be_within_one_allocation() -> None:
    space = AddressSpace()
    one = space.allocate(100, MemoryKind.DMA)
    assert space.view(one.address + 90, 10).size == 10
    for address, size in ((one.address + 90, 11), (one.address - 1, 1), (one.end, 1), (0, 1)):
        with pytest.raises(DeviceFault, match="unmapped"):
            space.view(address, size)


def test_mapped_memory_is_the_hosts_memory_and_may_be_read_only() -> None:
    space = AddressSpace()
    mine = np.arange(10, dtype=np.uint8)
    mapped = space.map(mine, MemoryKind.DMA, writable=False)
    assert np.shares_memory(space.view(mapped.address, 10), mine)
    with pytest.raises(DeviceFault, match="read-only"):
        space.view(mapped.address, 1, write=True)


def test_freed_memory_is_reused_at_the_end_of_a_range() -> None:
    space = AddressSpace()
    span = MemoryKind.FW.value
    third = (span.end - span.begin) // 3 - 2 * PAGE_BYTES
    first, second, third_one = (space.allocate(third, MemoryKind.FW) for _ in range(3))
    with pytest.raises(OutOfMemory):
        space.allocate(third, MemoryKind.FW)
    space.free(second)
    again = space.allocate(third, MemoryKind.FW)
    assert first.end < again.address < again.end < third_one.address


def test_invalid_allocations_writes_and_frees_are_errors() -> None:
    space = AddressSpace()
    with pytest.raises(OutOfMemory):
        space.allocate(1 << 40, MemoryKind.FW)
    with pytest.raises(DriverUsageError):
        space.allocate(0, MemoryKind.DMA)
    one = space.allocate(8, MemoryKind.DMA)
    with pytest.raises(DriverUsageError):
        one.write(1, bytes(8))
    space.free(one)
    with pytest.raises(DriverUsageError):
        space.free(one)


def test_threads_may_allocate_free_and_find_concurrently() -> None:
    """Two requests may be created while the device runs a third: addresses must not collide."""
    space = AddressSpace()
    taken: list[list[Allocation]] = [[] for _ in range(4)]

    def work(mine: list[Allocation]) -> None:
        for _ in range(150):
            mine.append(space.allocate(100, MemoryKind.DMA))
            space.free(space.allocate(100, MemoryKind.DMA))
            assert all(space.find(each.address) is each for each in mine)
        mine.append(space.allocate(1, MemoryKind.DMA))  # marks the end of the thread's work

    threads = [threading.Thread(target=work, args=(mine,)) for mine in taken]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert [len(mine) for mine in taken] == [151] * 4
    every = [each for mine in taken for each in mine]
    assert len({each.address for each in every}) == len(every)
    assert all(space.find(each.address) is each for each in every)


def whole(space: AddressSpace, living: set[Allocation]) -> bool:
    """Return whether exactly the given allocations exist, do not adjoin, and are found."""
    there = space.allocations()
    apart = all(one.end < other.address for one, other in pairwise(there))
    found = all(space.find(one.address) is one for one in there)
    return apart and found and {*map(id, there)} == {*map(id, living)}


def test_an_interrupted_allocation_is_atomic() -> None:
    space = AddressSpace()
    living = {space.allocate(size, MemoryKind.DMA) for size in (1, 5000, 70)}
    space.free(hole := next(iter(living)))
    living.remove(hole)
    for _ in interruptions(lambda: space.allocate(100, MemoryKind.DMA), space._lock):
        new = {*space.allocations()} - living
        assert len(new) <= 1
        living |= new
        assert whole(space, living)
    assert len(space.allocations()) == len(living) + 1


def test_an_interrupted_free_is_atomic() -> None:
    space = AddressSpace()
    living = {space.allocate(size, MemoryKind.DMA) for size in (1, 5000, 70)}
    target = space.allocate(100, MemoryKind.DMA)
    frees = space.frees

    def free() -> None:
        nonlocal target
        if target not in space.allocations():
            assert space.frees > frees, "prepared tasks see every free"
            target = space.allocate(100, MemoryKind.DMA)
        space.free(target)

    for _ in interruptions(free, space._lock):
        left = {*space.allocations()} - living
        assert len(left) <= 1
        assert whole(space, living | left)
        target = next(iter(left), target)
    assert whole(space, living)
