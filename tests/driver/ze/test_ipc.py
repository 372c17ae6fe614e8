"""Memory across processes: what one exports the other has, for as long as it wants to."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from driver_layer import ze
from driver_layer.npu.shareable import CAN_SHARE
from driver_layer.ze import ze_result_t as r

pytestmark = pytest.mark.skipif(not CAN_SHARE, reason="the host has no memfd")

DMA_BUF = ze.ze_external_memory_type_flags_t.ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF
OPAQUE = ze.ze_external_memory_type_flags_t.ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD
READ_ONLY = ze.ze_host_mem_alloc_flags_t.ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY
SIZE = 10_000

CHILD = """
import json, os, socket, sys
from driver_layer import ze

ze.zeInit(0)
(driver,) = ze.zeDriverGet()
(device,) = ze.zeDeviceGet(driver)
context = ze.zeContextCreate(driver)
flag = ze.ze_external_memory_type_flags_t.ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF
desc = ze.ze_host_mem_alloc_desc_t(pNext=ze.ze_external_memory_export_desc_t(flag))
wire = socket.socket(fileno=int(sys.argv[1]))
memory = {}

def allocate(name, size, value):
    memory[name] = ze.zeMemAllocHost(context, size, 0, desc)
    memory[name].data[:] = value

def handle(name):
    return ze.zeMemGetIpcHandle(context, memory[name]).data.hex()

def open_handle(name, data):
    memory[name] = ze.zeMemOpenIpcHandle(
        context, device, ze.ze_ipc_mem_handle_t(bytes.fromhex(data)))
    return memory[name].size

def close(name):
    ze.zeMemCloseIpcHandle(context, memory.pop(name))

def free(name):
    ze.zeMemFree(context, memory.pop(name))

def read(name, at):
    return int(memory[name].data[at])

def write(name, at, value):
    memory[name].data[at] = value

def send(name):
    asked = ze.ze_external_memory_export_fd_t(flag)
    found = ze.zeMemGetAllocProperties(context, memory[name], asked).pNext
    socket.send_fds(wire, [b"x"], [found.fd])
    os.close(found.fd)

for line in sys.stdin:
    call, *args = json.loads(line)
    try:
        answer = globals()[call](*args)
    except ze.ZeError as error:
        answer = error.code.name
    print(json.dumps(answer), flush=True)
"""


class Child:
    """Another process with a device, which does what it is told."""

    def __init__(self) -> None:
        self.wire, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(theirs.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()

    def __call__(self, *call: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def handle(self, name: str) -> ze.ze_ipc_mem_handle_t:
        return ze.ze_ipc_mem_handle_t(bytes.fromhex(self("handle", name)))

    def receive(self) -> int:
        """The descriptor that it sends."""
        _, (descriptor,), _, _ = socket.recv_fds(self.wire, 1, 1)
        return descriptor

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        self.kill()
        self.wire.close()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def child() -> Iterator[Child]:
    child = Child()
    yield child
    child.end()


def exportable(rig: Any, size: int = SIZE) -> ze.Memory:
    desc = ze.ze_host_mem_alloc_desc_t(pNext=ze.ze_external_memory_export_desc_t(DMA_BUF))
    return ze.zeMemAllocHost(rig.context, size, 0, desc)


def exported_fd(rig: Any, memory: ze.Memory) -> int:
    asked = ze.ze_external_memory_export_fd_t(DMA_BUF)
    found = ze.zeMemGetAllocProperties(rig.context, memory, asked).pNext
    assert found is not None
    return found.fd


def imported(rig: Any, descriptor: int, size: int = SIZE, read_only: bool = False) -> ze.Memory:
    flags = READ_ONLY if read_only else ze.ze_host_mem_alloc_flags_t.NONE
    desc = ze.ze_host_mem_alloc_desc_t(
        flags, ze.ze_external_memory_import_fd_t(DMA_BUF, descriptor)
    )
    return ze.zeMemAllocHost(rig.context, size, 0, desc)


def opened(rig: Any, handle: ze.ze_ipc_mem_handle_t) -> ze.Memory:
    return ze.zeMemOpenIpcHandle(rig.context, rig.device, handle)


def memory_descriptors() -> int:
    """How many descriptors of shareable memory this process has."""
    count = 0
    for one in os.listdir("/proc/self/fd"):
        try:
            count += "memfd:npu" in os.readlink(f"/proc/self/fd/{one}")
        except FileNotFoundError:
            continue
    return count


class TestHandles:
    def test_both_processes_see_what_the_other_writes(self, rig, child) -> None:
        child("allocate", "theirs", SIZE, 7)
        mine = opened(rig, child.handle("theirs"))
        assert mine.size == SIZE
        assert (mine.data == 7).all()
        child("write", "theirs", SIZE - 1, 9)
        assert mine.data[SIZE - 1] == 9
        mine.data[0] = 8
        assert child("read", "theirs", 0) == 8

    def test_the_device_computes_on_another_processs_memory(self, rig, child) -> None:
        child("allocate", "theirs", SIZE, 5)
        theirs = opened(rig, child.handle("theirs"))
        target = ze.zeMemAllocShared(rig.context, SIZE, 0, rig.device)
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        ze.zeCommandListAppendMemoryCopy(commands, target, theirs, SIZE)
        ze.zeCommandListAppendMemoryFill(commands, theirs, b"\3", SIZE)
        ze.zeCommandListClose(commands)
        rig.execute(commands)
        assert (target.data == 5).all()
        assert child("read", "theirs", SIZE // 2) == 3

    def test_what_is_open_outlives_the_exporters_free_and_its_death(self, rig, child) -> None:
        child("allocate", "freed", SIZE, 1)
        child("allocate", "held", SIZE, 2)
        freed, held = (opened(rig, child.handle(name)) for name in ("freed", "held"))
        child("free", "freed")
        assert (freed.data == 1).all()
        child.kill()
        assert (freed.data == 1).all()
        assert (held.data == 2).all()

    @pytest.mark.parametrize("ends", ["free", "put", "death"])
    def test_a_handle_is_of_no_use_when_the_exporter_has_ended_it(self, rig, child, ends) -> None:
        child("allocate", "theirs", SIZE, 1)
        handle = child.handle("theirs")
        if ends == "free":
            child("free", "theirs")
            child("allocate", "other", SIZE, 2)
            child("handle", "other")  # a descriptor that may well have the old one's number
        elif ends == "put":
            mine = exportable(rig)
            handle = ze.zeMemGetIpcHandle(rig.context, mine)
            ze.zeMemPutIpcHandle(rig.context, handle)
            assert (
                child("open_handle", "x", handle.data.hex()) == "ZE_RESULT_ERROR_INVALID_ARGUMENT"
            )
        else:
            child.kill()
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: opened(rig, handle))

    def test_with_its_descriptor_passed_along_a_handle_outlives_the_exporter(
        self, rig, child
    ) -> None:
        child("allocate", "theirs", SIZE, 6)
        handle = child.handle("theirs")
        child("send", "theirs")
        descriptor = child.receive()
        child.kill()
        passed = ze.ze_ipc_mem_handle_t(descriptor.to_bytes(4, "little") + handle.data[4:])
        mine = opened(rig, passed)
        os.close(descriptor)
        assert (mine.data == 6).all()

    def test_each_opening_has_an_address_of_its_own_and_is_closed_once(self, rig, child) -> None:
        child("allocate", "theirs", SIZE, 1)
        handle = child.handle("theirs")
        one, two = opened(rig, handle), opened(rig, handle)
        assert one.address != two.address
        one.data[0] = 4
        assert two.data[0] == 4
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: ze.zeMemFree(rig.context, one))
        close = ze.zeMemCloseIpcHandle
        close(rig.context, one)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: close(rig.context, one))
        assert two.data[0] == 4
        close(rig.context, two)
        mine = exportable(rig)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: close(rig.context, mine))

    def test_a_handle_is_one_until_it_is_put_back_and_is_put_back_once(self, rig) -> None:
        mine = exportable(rig)
        first = ze.zeMemGetIpcHandle(rig.context, mine)
        assert len(first.data) == ze.ZE_MAX_IPC_HANDLE_SIZE
        assert ze.zeMemGetIpcHandle(rig.context, mine) == first
        put = ze.zeMemPutIpcHandle
        put(rig.context, first)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: put(rig.context, first))
        assert opened(rig, ze.zeMemGetIpcHandle(rig.context, mine)).size == SIZE

    def test_memory_of_the_device_has_no_host_view_in_the_other_process_either(self, rig) -> None:
        desc = ze.ze_device_mem_alloc_desc_t(pNext=ze.ze_external_memory_export_desc_t(OPAQUE))
        hidden = ze.zeMemAllocDevice(rig.context, SIZE, 0, rig.device, desc)
        again = opened(rig, ze.zeMemGetIpcHandle(rig.context, hidden))
        rig.fails(r.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, lambda: again.data)

    def test_what_has_no_handle_is_told_why(self, rig) -> None:
        get = ze.zeMemGetIpcHandle
        private = ze.zeMemAllocHost(rig.context, SIZE)
        error = rig.fails(r.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, lambda: get(rig.context, private))
        assert "ze_external_memory_export_desc_t" in str(error)
        shared = ze.zeMemAllocShared(rig.context, SIZE, 0, rig.device)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: get(rig.context, shared))
        gone = exportable(rig)
        ze.zeMemFree(rig.context, gone)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: get(rig.context, gone))

    def test_bytes_that_are_no_handle_are_refused(self, rig) -> None:
        good = ze.zeMemGetIpcHandle(rig.context, exportable(rig)).data
        draw = np.random.default_rng(0)
        bad = [b"", good[:-1], good + b"\0", bytes(64), b"\xff" * 64]
        bad += [draw.bytes(64) for _ in range(20)]
        for places in ((4,), (12,), (24,), (32,), (0, 8)):
            damaged = bytearray(good)  # in its mark, kind, device, inode; descriptor and process
            for at in places:
                damaged[at : at + 4] = b"\x7f\xff\xff\x7f"
            bad.append(bytes(damaged))
        for data in bad:
            handle = ze.ze_ipc_mem_handle_t(data)
            rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda h=handle: opened(rig, h))
        larger = good[:16] + (1 << 40).to_bytes(8, "little") + good[24:]
        rig.fails(
            r.ZE_RESULT_ERROR_INVALID_ARGUMENT,
            lambda: opened(rig, ze.ze_ipc_mem_handle_t(larger)),
        )

    def test_unknown_flags_are_refused(self, rig) -> None:
        handle = ze.zeMemGetIpcHandle(rig.context, exportable(rig))
        rig.fails(
            r.ZE_RESULT_ERROR_INVALID_ENUMERATION,
            lambda: ze.zeMemOpenIpcHandle(
                rig.context, rig.device, handle, ze.ze_ipc_memory_flags_t(4)
            ),
        )


class TestDescriptors:
    def test_the_device_says_how_memory_is_handed_on(self, rig) -> None:
        found = ze.zeDeviceGetExternalMemoryProperties(rig.device)
        for flags in (found.memoryAllocationExportTypes, found.memoryAllocationImportTypes):
            assert flags == DMA_BUF | OPAQUE
        assert not found.imageExportTypes | found.imageImportTypes

    def test_an_exported_descriptor_is_imported_and_outlives_everybody(self, rig, child) -> None:
        child("allocate", "theirs", SIZE, 3)
        child("send", "theirs")
        descriptor = child.receive()
        child.kill()
        mine = imported(rig, descriptor)
        os.close(descriptor)
        assert (mine.data == 3).all()
        ze.zeMemFree(rig.context, mine)

    def test_what_is_imported_to_read_is_written_by_nobody(self, rig) -> None:
        mine = exportable(rig)
        mine.data[:] = 2
        descriptor = exported_fd(rig, mine)
        view = imported(rig, descriptor, read_only=True)
        os.close(descriptor)
        assert (view.data == 2).all()
        with pytest.raises(ValueError, match="read-only"):
            view.data[0] = 1
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        for write in (
            lambda: ze.zeCommandListAppendMemoryFill(commands, view, b"\1", SIZE),
            lambda: ze.zeCommandListAppendMemoryCopy(commands, view, mine, SIZE),
        ):
            rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, write)
        assert (mine.data == 2).all()

    def test_every_question_gives_a_descriptor_of_its_own(self, rig) -> None:
        mine = exportable(rig)
        one, two = exported_fd(rig, mine), exported_fd(rig, mine)
        assert one != two
        assert not os.get_inheritable(one)
        os.close(one)
        assert imported(rig, two).size == SIZE
        os.close(two)

    def test_only_what_was_allocated_for_it_is_exported(self, rig) -> None:
        private = ze.zeMemAllocHost(rig.context, SIZE)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: exported_fd(rig, private))
        ask = ze.ze_external_memory_export_fd_t
        for flags, code in (
            (OPAQUE, r.ZE_RESULT_ERROR_INVALID_ARGUMENT),
            (ze.ze_external_memory_type_flags_t(4), r.ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION),
        ):
            rig.fails(
                code,
                lambda flags=flags: ze.zeMemGetAllocProperties(
                    rig.context, exportable(rig), ask(flags)
                ),
            )

    def test_allocating_checks_flags_and_sizes(self, rig) -> None:
        def allocate(size: int, flags: int) -> ze.Memory:
            wanted = ze.ze_external_memory_export_desc_t(ze.ze_external_memory_type_flags_t(flags))
            desc = ze.ze_host_mem_alloc_desc_t(pNext=wanted)
            return ze.zeMemAllocHost(rig.context, size, 0, desc)

        rig.fails(r.ZE_RESULT_ERROR_UNSUPPORTED_SIZE, lambda: allocate(0, DMA_BUF))
        rig.fails(r.ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION, lambda: allocate(SIZE, 0))
        rig.fails(r.ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION, lambda: allocate(SIZE, 64))
        rig.fails(r.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY, lambda: allocate(1 << 50, DMA_BUF))
        rig.fails(r.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY, lambda: allocate(1 << 70, DMA_BUF))

    @pytest.mark.parametrize("kind", ["closed", "negative", "file", "pipe", "can shrink", "short"])
    def test_a_descriptor_that_is_no_such_memory_is_refused(self, rig, kind) -> None:
        """A file could be cut short while the device reads it, and end the process."""
        make: dict[str, Callable[[], int]] = {
            "closed": lambda: 10_000,
            "negative": lambda: -1,
            "pipe": lambda: os.pipe()[0],
            "can shrink": lambda: os.memfd_create("x", os.MFD_ALLOW_SEALING),
            "short": lambda: exported_fd(rig, exportable(rig, 4096)),
        }
        with tempfile.TemporaryFile() as file:
            file.write(bytes(SIZE))
            file.flush()
            descriptor = file.fileno() if kind == "file" else make[kind]()
            if kind == "can shrink":
                os.ftruncate(descriptor, SIZE)
            rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: imported(rig, descriptor))

    def test_nobody_can_cut_exported_memory_short(self, rig) -> None:
        descriptor = exported_fd(rig, exportable(rig))
        for size in (0, 4096, 1 << 20):
            with pytest.raises(PermissionError):
                os.ftruncate(descriptor, size)
        os.close(descriptor)


def test_nothing_stays_open_when_memory_goes(rig, child) -> None:
    gc.collect()  # what other tests left
    before = memory_descriptors()
    child("allocate", "theirs", SIZE, 1)
    theirs = opened(rig, child.handle("theirs"))
    mine = exportable(rig)
    ze.zeMemGetIpcHandle(rig.context, mine)
    descriptor = exported_fd(rig, mine)
    again = imported(rig, descriptor)
    os.close(descriptor)
    assert memory_descriptors() > before
    ze.zeMemCloseIpcHandle(rig.context, theirs)
    ze.zeMemFree(rig.context, mine)
    held = memory_descriptors()
    ze.zeMemFree(rig.context, again)
    assert memory_descriptors() < held
    del theirs, mine, again  # whoever looks at bytes keeps them
    assert memory_descriptors() == before
    exportable(rig)
    opened(rig, ze.zeMemGetIpcHandle(rig.context, exportable(rig)))
    ze.zeContextDestroy(rig.context)
    assert memory_descriptors() == before
