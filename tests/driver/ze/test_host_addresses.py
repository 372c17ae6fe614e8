"""A driver whose callers' memory has the same address on the device and on the host."""

from __future__ import annotations

import mmap
import subprocess
import sys

import numpy as np
import pytest
from tests.driver.ze.conftest import Rig

from driver_layer import ze
from driver_layer.testing.blobs import dense_blob, is_expected
from driver_layer.ze import ze_result_t as r

READ_ONLY = ze.ze_host_mem_alloc_flags_t.ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY


@pytest.fixture
def at_host() -> Rig:
    driver = ze.simulated_driver("4000", host_addresses=True)
    (device,) = ze.zeDeviceGet(driver)
    context = ze.zeContextCreate(driver)
    table = ze.zeDriverGetExtensionFunctionAddress(driver, "ZE_extension_graph")
    return Rig(device, context, table, ze.zeCommandQueueCreate(context, device))


def pages(size: int = 2 * 4096) -> np.ndarray:
    return np.frombuffer(mmap.mmap(-1, size), np.uint8)


def imported(rig: Rig, host: np.ndarray, flags=ze.ze_host_mem_alloc_flags_t.NONE) -> ze.Memory:
    desc = ze.ze_host_mem_alloc_desc_t(flags, ze.ze_external_memmap_sysmem_ext_desc_t(host))
    return ze.zeMemAllocHost(rig.context, host.nbytes, host_desc=desc)


def test_all_kinds_of_memory_lie_at_the_addresses_of_their_bytes(at_host) -> None:
    host = ze.zeMemAllocHost(at_host.context, 100)
    shared = ze.zeMemAllocShared(at_host.context, 100, 0, at_host.device)
    device = ze.zeMemAllocDevice(at_host.context, 100, 0, at_host.device)
    exported = at_host.exportable()
    for memory in (host, shared, device, exported):
        assert memory.address == memory.allocation.data.ctypes.data
        assert memory.address % 4096 == 0
        assert not memory.allocation.data.any()


def test_imported_memory_is_used_in_place_at_its_own_address(at_host) -> None:
    host = pages()
    memory = imported(at_host, host)
    assert memory.address == host.ctypes.data
    inside = host.ctypes.data + 5000
    assert ze.zeMemGetAddressRange(at_host.context, inside) == (host.ctypes.data, host.size)
    commands = ze.zeCommandListCreate(at_host.context, at_host.device)
    ze.zeCommandListAppendMemoryFill(commands, inside, b"\7", 1)
    ze.zeCommandListClose(commands)
    at_host.execute(commands)
    assert host[5000] == 7


def test_a_graph_runs_on_pointers_of_the_host(at_host, x) -> None:
    graph = at_host.graph(dense_blob())
    host, y = pages(), np.frombuffer(mmap.mmap(-1, 4096), np.uint8)
    imported(at_host, host)
    imported(at_host, y)
    host[: x.nbytes] = x.view(np.uint8).reshape(-1)
    at_host.table.pfnSetArgumentValue(graph, 0, host.ctypes.data)
    at_host.table.pfnSetArgumentValue(graph, 1, y.ctypes.data)
    at_host.execute(at_host.recorded(graph))
    rows = y.view(np.float32)[: x.shape[0] * (y.size // 4 // x.shape[0])]
    out = at_host.arguments(graph, x)
    at_host.execute(at_host.recorded(graph))
    assert is_expected(at_host.values(out), x)
    assert np.array_equal(rows[: at_host.values(out).size], at_host.values(out).reshape(-1))


def test_read_only_memory_and_unaligned_memory_are_rejected_as_elsewhere(at_host) -> None:
    host = pages()
    invalid = r.ZE_RESULT_ERROR_INVALID_ARGUMENT
    unaligned = r.ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT
    at_host.fails(unaligned, lambda: imported(at_host, host[64:]))
    host.flags.writeable = False
    at_host.fails(invalid, lambda: imported(at_host, host))
    assert not imported(at_host, host, READ_ONLY).allocation.writable


def test_memory_that_is_mapped_already_is_rejected(at_host) -> None:
    host = pages(4 * 4096)
    imported(at_host, host[4096 : 3 * 4096])
    for first, last in ((0, 4), (0, 2), (2, 4), (1, 3), (1, 2)):
        again = host[first * 4096 : last * 4096]
        at_host.fails(
            r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda again=again: imported(at_host, again)
        )
    for first, last in ((0, 1), (3, 4)):
        imported(at_host, host[first * 4096 : last * 4096])


def test_too_much_memory_is_out_of_memory(at_host) -> None:
    for size in (1 << 38, 1 << 50, 1 << 70):
        at_host.fails(
            r.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY,
            lambda size=size: ze.zeMemAllocHost(at_host.context, size),
        )


def test_the_library_chooses_the_addresses_of_all_drivers_that_it_initialises() -> None:
    program = """
from driver_layer import ze
ze.use_host_addresses()
(driver,) = ze.zeInitDrivers(0)
memory = ze.zeMemAllocHost(ze.zeContextCreate(driver), 64)
assert memory.address == memory.data.ctypes.data
assert ze.zeDriverGet() == [driver]
assert ze.simulated_driver("4000") is not driver
"""
    subprocess.run([sys.executable, "-c", program], check=True)
