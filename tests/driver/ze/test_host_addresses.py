"""A driver whose callers' memory lies at the addresses of another process, or of this one."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.driver.c_abi.direct import carry_out
from tests.driver.ze.conftest import Rig

from driver_layer import ze
from driver_layer.c_abi.bounce_buffer import PageBuffer, changes
from driver_layer.c_abi.host import Host
from driver_layer.c_abi.host_process import CallingProcess
from driver_layer.testing.blobs import COLS, ROWS, dense_blob, is_expected
from driver_layer.ze import ze_result_t as r


@pytest.fixture
def at_host() -> Rig:
    driver = ze.simulated_driver("4000", CallingProcess(Host(os.getpid(), carry_out)))
    (device,) = ze.zeDeviceGet(driver)
    context = ze.zeContextCreate(driver)
    table = ze.zeDriverGetExtensionFunctionAddress(driver, "ZE_extension_graph")
    return Rig(device, context, table, ze.zeCommandQueueCreate(context, device))


def pages(size: int = 2 * 4096) -> np.ndarray:
    return np.frombuffer(mmap.mmap(-1, size), np.uint8)


def bounced(rig: Rig, pages: np.ndarray, writable: bool = True) -> ze.Memory:
    address = pages.ctypes.data
    buffer = PageBuffer(Host(os.getpid(), carry_out), address, pages.size, writable)
    return rig.context.map_bounced(address, buffer.data, writable, buffer)


def test_all_kinds_of_memory_lie_at_the_hosts_addresses(at_host) -> None:
    host = ze.zeMemAllocHost(at_host.context, 100)
    shared = ze.zeMemAllocShared(at_host.context, 100, 0, at_host.device)
    device = ze.zeMemAllocDevice(at_host.context, 100, 0, at_host.device)
    exported = at_host.exportable()
    for number, memory in enumerate((host, shared, device, exported)):
        assert memory.address % 4096 == 0
        assert not memory.allocation.data.any()
        memory.allocation.data[:] = number + 1
        assert ctypes.string_at(memory.address, memory.size) == bytes([number + 1]) * memory.size


def test_freed_memory_is_no_longer_in_the_host(at_host) -> None:
    memory = ze.zeMemAllocHost(at_host.context, 100)
    assert f"{memory.address:x}-" in Path("/proc/self/maps").read_text()
    ze.zeMemFree(at_host.context, memory)
    assert f"{memory.address:x}-" not in Path("/proc/self/maps").read_text()


def test_bounced_pages_are_copied_for_each_command(at_host) -> None:
    host = pages()
    memory = bounced(at_host, host)
    assert memory.address == host.ctypes.data
    inside = host.ctypes.data + 5000
    assert ze.zeMemGetAddressRange(at_host.context, inside) == (host.ctypes.data, host.size)
    commands = ze.zeCommandListCreate(at_host.context, at_host.device)
    ze.zeCommandListAppendMemoryFill(commands, inside, b"\7", 1)
    ze.zeCommandListAppendMemoryCopy(commands, inside + 1, host.ctypes.data, 4)
    ze.zeCommandListClose(commands)
    host[:4] = (1, 2, 3, 4)
    at_host.execute(commands)
    assert host[5000:5005].tolist() == [7, 1, 2, 3, 4]


def test_pages_that_the_device_may_not_write_are_only_read(at_host) -> None:
    host = pages()
    bounced(at_host, host, writable=False)
    target = ze.zeMemAllocHost(at_host.context, 8)
    commands = ze.zeCommandListCreate(at_host.context, at_host.device)
    ze.zeCommandListAppendMemoryCopy(commands, target, host.ctypes.data, 8)
    ze.zeCommandListClose(commands)
    host[:8] = 9
    at_host.execute(commands)
    assert target.data.tolist() == [9] * 8
    at_host.fails(
        r.ZE_RESULT_ERROR_INVALID_ARGUMENT,
        lambda: at_host.context.bytes_at(host.ctypes.data, 8, write=True),
    )


@given(
    st.integers(1, 5 * 4096).flatmap(
        lambda size: st.tuples(st.just(size), st.lists(st.integers(0, size - 1), max_size=9))
    )
)
def test_changes_are_all_bytes_that_differ_and_begin_and_end_with_one(case) -> None:
    size, places = case
    before = np.arange(size, dtype=np.uint8)
    after = before.copy()
    after[places] += 1
    found = changes(before, after)
    rebuilt = before.copy()
    for first, last in found:
        rebuilt[first:last] = after[first:last]
        assert before[first] != after[first]
        assert before[last - 1] != after[last - 1]
    assert np.array_equal(rebuilt, after)
    assert len(found) <= len({place // 4096 for place in places})


def test_a_graph_runs_on_pointers_of_the_host(at_host, x) -> None:
    graph = at_host.graph(dense_blob())
    host, y = pages(), pages(4096)
    bounced(at_host, host)
    bounced(at_host, y)
    at_host.table.pfnSetArgumentValue(graph, 0, host.ctypes.data)
    at_host.table.pfnSetArgumentValue(graph, 1, y.ctypes.data)
    recorded = at_host.recorded(graph)
    for scale in (1, 2):
        host[: x.nbytes] = (scale * x).view(np.uint8).reshape(-1)
        at_host.execute(recorded)
        out = y.view(np.float32)[: ROWS * COLS].reshape(ROWS, COLS)
        assert is_expected(out, scale * x)


def test_memory_that_is_mapped_already_is_rejected(at_host) -> None:
    host = pages(4 * 4096)
    bounced(at_host, host[4096 : 3 * 4096])
    for first, last in ((0, 4), (0, 2), (2, 4), (1, 3), (1, 2)):
        again = host[first * 4096 : last * 4096]
        at_host.fails(
            r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda again=again: bounced(at_host, again)
        )
    for first, last in ((0, 1), (3, 4)):
        bounced(at_host, host[first * 4096 : last * 4096])


def test_too_much_memory_is_out_of_memory(at_host) -> None:
    for size in (1 << 38, 1 << 50, 1 << 70):
        at_host.fails(
            r.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY,
            lambda size=size: ze.zeMemAllocHost(at_host.context, size),
        )


def test_the_drivers_that_zeinit_chooses_are_the_hosts() -> None:
    program = """
import os
from driver_layer import ze
from driver_layer.ze.host_process import OwnProcess
host = OwnProcess()
ze.serve_host(host)
(driver,) = ze.zeInitDrivers(0)
assert driver.device.host is host
assert ze.zeDriverGet() == [driver]
assert ze.simulated_driver("4000") is not driver
"""
    subprocess.run([sys.executable, "-c", program], check=True)
