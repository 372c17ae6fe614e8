"""Memory, queues, fences and events through the library.

Source: linux-npu-driver v1.32.1, validation/umd-test (test_memory.cpp, test_fence.cpp,
test_event_sync.cpp, test_import_system_memory.cpp, test_priority.cpp).
"""

from __future__ import annotations

import ctypes
import mmap
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.driver.c_abi.library import (
    FOREVER,
    INVALID_ARGUMENT,
    NOT_READY,
    SUCCESS,
    Rig,
)
from tests.driver.npu.test_turns import until_waiting

from driver_layer.c_abi.declarations import at, ffi
from driver_layer.c_abi.handle_table import HANDLES
from driver_layer.testing.blobs import COLS, DEPTH, ROWS, is_expected

OUT_OF_DEVICE_MEMORY = 0x70000003
UNSUPPORTED_SIZE, UNSUPPORTED_ALIGNMENT = 0x78000009, 0x7800000A
READ_ONLY = 1 << 4
HOST, DEVICE, SHARED = 1, 2, 3


def allocation(rig: Rig, address: int) -> tuple[int, int, int]:
    """Return type, id and device of the memory at an address."""
    place, device = rig.struct("ze_memory_allocation_properties_t"), rig.buffer(bytes(8))
    assert rig.npu.zeMemGetAllocProperties(rig.context, address, place, device) == SUCCESS
    found = rig.read("ze_memory_allocation_properties_t", place)
    return found.type, found.id, at("uint64_t", device)[0]


class TestMemory:
    def test_each_kind_is_described_by_any_address_in_it(self, rig) -> None:
        on_device = rig.struct("ze_device_mem_alloc_desc_t")
        on_host = rig.struct("ze_host_mem_alloc_desc_t")
        npu, context, device = rig.npu, rig.context, rig.device
        made = {
            HOST: npu.make("zeMemAllocHost", context, on_host, 5000, 0),
            DEVICE: npu.make("zeMemAllocDevice", context, on_device, 5000, 0, device),
            SHARED: npu.make("zeMemAllocShared", context, on_device, on_host, 5000, 0, device),
        }
        found = {kind: allocation(rig, address + 4999) for kind, address in made.items()}
        assert {kind: each[0] for kind, each in found.items()} == {kind: kind for kind in made}
        assert len({each[1] for each in found.values()}) == 3
        assert [found[kind][2] for kind in made] == [0, rig.device, rig.device]
        assert allocation(rig, rig.buffer(b"user"))[0] == 0
        base, size = rig.buffer(bytes(8)), rig.buffer(bytes(8))
        assert npu.zeMemGetAddressRange(context, made[HOST] + 17, base, size) == SUCCESS
        assert (at("uint64_t", base)[0], at("uint64_t", size)[0]) == (made[HOST], 5000)
        for address in made.values():
            assert npu.zeMemFree(context, address) == SUCCESS
            assert npu.zeMemFree(context, address) == INVALID_ARGUMENT

    def test_only_the_begin_of_memory_can_be_freed(self, rig) -> None:
        address = rig.host()
        assert rig.npu.zeMemFree(rig.context, address + 1) == INVALID_ARGUMENT
        assert rig.npu.zeMemFree(rig.context, address) == SUCCESS

    def test_sizes_and_alignments_are_checked(self, rig) -> None:
        desc, place = rig.struct("ze_host_mem_alloc_desc_t"), rig.buffer(bytes(8))
        allocate = rig.npu.zeMemAllocHost
        assert allocate(rig.context, desc, 0, 0, place) == UNSUPPORTED_SIZE
        assert allocate(rig.context, desc, 64, 3, place) == UNSUPPORTED_ALIGNMENT
        assert allocate(rig.context, desc, 1 << 60, 0, place) == OUT_OF_DEVICE_MEMORY
        assert at("uint64_t", place)[0] == 0

    def test_copies_and_fills_reach_the_callers_bytes(self, rig) -> None:
        source, target = rig.host(), rig.host()
        pattern = rig.buffer(b"\x01\x02\x03\x04")
        commands = rig.list()
        fill = rig.npu.zeCommandListAppendMemoryFill
        assert fill(commands, source, pattern, 4, 4096, None, 0, None) == SUCCESS
        copy = rig.npu.zeCommandListAppendMemoryCopy
        assert copy(commands, target + 8, source, 16, None, 0, None) == SUCCESS
        rig.run(commands)
        assert ctypes.string_at(target, 32) == bytes(8) + b"\x01\x02\x03\x04" * 4 + bytes(8)


class TestImport:
    def imported(
        self, rig: Rig, pages: mmap.mmap, flags: int = 0, size: int = 0
    ) -> tuple[int, int]:
        """Import pages; return the code and the address."""
        at_pages = int(ffi.cast("uintptr_t", ffi.from_buffer(pages)))
        request = rig.struct(
            "ze_external_memmap_sysmem_ext_desc_t", pSystemMemory=at_pages, size=size or len(pages)
        )
        desc = rig.struct("ze_host_mem_alloc_desc_t", flags=flags, pNext=request)
        place = rig.buffer(bytes(8))
        code = rig.npu.zeMemAllocHost(rig.context, desc, size or len(pages), 0, place)
        assert code or at("uint64_t", place)[0] == at_pages
        return code, at_pages

    def check_copy(self, rig: Rig, pages: mmap.mmap, flags: int = 0) -> None:
        code, address = self.imported(rig, pages, flags)
        assert code == SUCCESS
        target, commands = rig.host(len(pages)), rig.list()
        copy = rig.npu.zeCommandListAppendMemoryCopy
        assert copy(commands, target, address, len(pages), None, 0, None) == SUCCESS
        rig.run(commands)
        assert ctypes.string_at(target, len(pages)) == pages[:]
        assert rig.npu.zeMemFree(rig.context, address) == SUCCESS
        assert rig.npu.zeCommandListDestroy(commands) == SUCCESS

    def test_anonymous_pages(self, rig) -> None:
        pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
        pages[:5] = b"bytes"
        self.check_copy(rig, pages)

    @pytest.mark.parametrize("access", [mmap.ACCESS_WRITE, mmap.ACCESS_COPY, mmap.ACCESS_READ])
    def test_pages_of_a_file(self, rig, tmp_path: Path, access: int) -> None:
        path = tmp_path / "file"
        path.write_bytes(b"\xab" * mmap.PAGESIZE)
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0, access=access) as pages:
            read_only = access == mmap.ACCESS_READ
            if read_only:
                assert self.imported(rig, pages)[0] == OUT_OF_DEVICE_MEMORY
            self.check_copy(rig, pages, READ_ONLY if read_only else 0)
            rig.kept.clear()  # the map's views

    def test_pages_that_are_not_there(self, rig) -> None:
        pages = mmap.mmap(-1, 4 * mmap.PAGESIZE)
        too_many = 1 << 40
        assert self.imported(rig, pages, size=too_many)[0] == OUT_OF_DEVICE_MEMORY

    def test_a_part_of_a_page(self, rig) -> None:
        pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
        at_pages = int(ffi.cast("uintptr_t", ffi.from_buffer(pages)))
        request = rig.struct(
            "ze_external_memmap_sysmem_ext_desc_t", pSystemMemory=at_pages + 8, size=64
        )
        desc = rig.struct("ze_host_mem_alloc_desc_t", pNext=request)
        code = rig.npu.zeMemAllocHost(rig.context, desc, 64, 0, rig.buffer(bytes(8)))
        assert code == UNSUPPORTED_ALIGNMENT


class TestFences:
    def test_a_fence_is_ready_after_its_submission_until_it_is_reset(self, rig) -> None:
        npu = rig.npu
        fence = npu.make("zeFenceCreate", rig.queue, rig.struct("ze_fence_desc_t"))
        assert npu.zeFenceQueryStatus(fence) == NOT_READY
        assert npu.zeFenceHostSynchronize(fence, 0) == NOT_READY
        commands = rig.list()
        assert npu.zeCommandListClose(commands) == SUCCESS
        lists = rig.buffer(commands.to_bytes(8, "little"))
        execute = npu.zeCommandQueueExecuteCommandLists
        assert execute(rig.queue, 1, lists, fence) == SUCCESS
        for _ in range(2):
            assert npu.zeFenceHostSynchronize(fence, FOREVER) == SUCCESS
        assert npu.zeFenceQueryStatus(fence) == SUCCESS
        assert npu.zeFenceReset(fence) == SUCCESS
        assert npu.zeFenceQueryStatus(fence) == NOT_READY
        assert npu.zeFenceDestroy(fence) == SUCCESS

    def test_a_fence_may_begin_signaled(self, rig) -> None:
        desc = rig.struct("ze_fence_desc_t", flags=1)
        fence = rig.npu.make("zeFenceCreate", rig.queue, desc)
        assert rig.npu.zeFenceQueryStatus(fence) == SUCCESS


class TestEvents:
    @pytest.fixture
    def events(self, rig) -> list[int]:
        pool_desc = rig.struct("ze_event_pool_desc_t", count=2, flags=1)
        pool = rig.npu.make("zeEventPoolCreate", rig.context, pool_desc, 0, None)
        descs = [rig.struct("ze_event_desc_t", index=index) for index in range(2)]
        return [rig.npu.make("zeEventCreate", pool, desc) for desc in descs]

    def test_a_list_waits_for_the_host(self, rig, events) -> None:
        npu, commands = rig.npu, rig.list()
        waits = rig.buffer(events[0].to_bytes(8, "little"))
        assert npu.zeCommandListAppendWaitOnEvents(commands, 1, waits) == SUCCESS
        assert npu.zeCommandListAppendSignalEvent(commands, events[1]) == SUCCESS
        runner = threading.Thread(target=rig.run, args=(commands,))
        runner.start()
        assert npu.zeEventHostSynchronize(events[1], 1_000_000) == NOT_READY
        assert npu.zeEventHostSignal(events[0]) == SUCCESS
        runner.join()
        assert npu.zeEventQueryStatus(events[1]) == SUCCESS
        assert npu.zeEventHostReset(events[1]) == SUCCESS
        assert npu.zeEventQueryStatus(events[1]) == NOT_READY

    def test_an_index_is_used_once(self, rig) -> None:
        pool_desc = rig.struct("ze_event_pool_desc_t", count=1)
        pool = rig.npu.make("zeEventPoolCreate", rig.context, pool_desc, 0, None)
        desc, place = rig.struct("ze_event_desc_t"), rig.buffer(bytes(8))
        assert rig.npu.zeEventCreate(pool, desc, place) == SUCCESS
        assert rig.npu.zeEventCreate(pool, desc, place) == INVALID_ARGUMENT


def test_an_urgent_job_completes_before_many_others_that_wait(direct) -> None:
    """Repeat CommandQueuePriority.executeManyLowPriorityJobsExpectHighPriorityJobCompletesFirst.

    The others write the urgent one's input, so its output shows whether one of them ran first.
    """
    rig = direct
    x = np.linspace(-1, 1, ROWS * DEPTH, dtype=np.float32)
    source, between, result = rig.host(), rig.host(), rig.host()
    rig.view(source, x.size)[:] = 3
    rig.view(between, x.size)[:] = x
    lists = []
    for places in [(source, between)] * 8 + [(between, result)]:
        graph = rig.graph()
        for index, place in enumerate(places):
            assert rig.npu.pfnSetArgumentValue(graph, index, place) == SUCCESS
        lists.append(rig.list())
        append = rig.npu.pfnAppendGraphExecute
        assert append(lists[-1], graph, None, None, 0, None) == SUCCESS
        assert rig.npu.zeCommandListClose(lists[-1]) == SUCCESS
    low, high = 1, 2
    queues = [
        rig.npu.make(
            "zeCommandQueueCreate",
            rig.context,
            rig.device,
            rig.struct("ze_command_queue_desc_t", priority=priority),
        )
        for priority in [low] * 8 + [high]
    ]
    engines = HANDLES.required(rig.device, "hDevice").npu.engines
    with engines:  # until all jobs wait for their turn
        for queue, commands in zip(queues, lists, strict=True):
            one = rig.buffer(commands.to_bytes(8, "little"))
            execute = rig.npu.zeCommandQueueExecuteCommandLists
            assert execute(queue, 1, one, None) == SUCCESS
        until_waiting(engines, len(queues))
    for queue in queues:
        assert rig.npu.zeCommandQueueSynchronize(queue, FOREVER) == SUCCESS
        assert rig.npu.zeCommandQueueDestroy(queue) == SUCCESS
    assert is_expected(rig.view(result, ROWS * COLS).reshape(ROWS, COLS), x.reshape(ROWS, DEPTH))


@pytest.mark.parametrize("priority", [0, 1, 2])
def test_queues_of_all_priorities_and_workload_types_run(rig, priority) -> None:
    desc = rig.struct("ze_command_queue_desc_t", priority=priority)
    queue = rig.npu.make("zeCommandQueueCreate", rig.context, rig.device, desc)
    assert rig.npu.pfnSetWorkloadType(queue, 1) == SUCCESS
    rig.queue, kept = queue, rig.queue
    a, b = rig.host(), rig.host()
    rig.view(a, 4)[:] = 7
    commands = rig.list()
    copied = rig.npu.zeCommandListAppendMemoryCopy(commands, b, a, 16, None, 0, None)
    assert copied == SUCCESS
    rig.run(commands)
    assert np.all(rig.view(b, 4) == 7)
    rig.queue = kept
    assert rig.npu.zeCommandQueueDestroy(queue) == SUCCESS
