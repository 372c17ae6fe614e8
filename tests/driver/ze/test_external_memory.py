"""External memory: export and import of descriptors, and closing them with the memory."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable

import pytest

from driver_layer import ze
from driver_layer.npu.shareable import CAN_SHARE
from driver_layer.ze import ze_result_t as r

pytestmark = pytest.mark.skipif(not CAN_SHARE, reason="the host has no memfd")

DMA_BUF = ze.ze_external_memory_type_flags_t.ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF
OPAQUE = ze.ze_external_memory_type_flags_t.ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD
SIZE = 10_000


def memory_descriptors() -> int:
    """Return the number of descriptors of shareable memory of this process."""
    count = 0
    for one in os.listdir("/proc/self/fd"):
        try:
            count += "memfd:npu" in os.readlink(f"/proc/self/fd/{one}")
        except FileNotFoundError:
            continue
    return count


def test_the_device_reports_the_forms_of_export_and_import(rig) -> None:
    found = ze.zeDeviceGetExternalMemoryProperties(rig.device)
    assert found.memoryAllocationExportTypes == DMA_BUF | OPAQUE
    host = ze.ze_external_memory_type_flags_t.ZE_EXTERNAL_MEMORY_TYPE_FLAG_STANDARD_ALLOCATION
    assert host == 0x100
    assert found.memoryAllocationImportTypes == DMA_BUF | OPAQUE | host
    assert not found.imageExportTypes | found.imageImportTypes


def test_imported_memory_outlives_its_exporter(rig, child) -> None:
    child("allocate", "theirs", SIZE, 3)
    child("send", "theirs")
    descriptor = child.receive()
    child.kill()
    mine = rig.imported(descriptor)
    os.close(descriptor)
    assert (mine.data == 3).all()
    ze.zeMemFree(rig.context, mine)


def test_memory_that_is_imported_read_only_cannot_be_written(rig) -> None:
    mine = rig.exportable()
    mine.data[:] = 2
    descriptor = rig.exported_fd(mine)
    view = rig.imported(descriptor, read_only=True)
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


def test_every_export_returns_a_new_descriptor(rig) -> None:
    mine = rig.exportable()
    one, two = rig.exported_fd(mine), rig.exported_fd(mine)
    assert one != two
    assert not os.get_inheritable(one)
    os.close(one)
    assert rig.imported(two).size == SIZE
    os.close(two)


def test_only_memory_allocated_for_export_is_exported(rig) -> None:
    private = ze.zeMemAllocHost(rig.context, SIZE)
    rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: rig.exported_fd(private))
    ask = ze.ze_external_memory_export_fd_t
    for flags, code in (
        (OPAQUE, r.ZE_RESULT_ERROR_INVALID_ARGUMENT),
        (ze.ze_external_memory_type_flags_t(4), r.ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION),
    ):
        rig.fails(
            code,
            lambda flags=flags: ze.zeMemGetAllocProperties(
                rig.context, rig.exportable(), ask(flags)
            ),
        )


def test_allocation_for_export_checks_flags_and_sizes(rig) -> None:
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
def test_descriptors_of_other_memory_are_rejected(rig, kind) -> None:
    """A file could be truncated while the device reads it, which would end the process."""
    make: dict[str, Callable[[], int]] = {
        "closed": lambda: 10_000,
        "negative": lambda: -1,
        "pipe": lambda: os.pipe()[0],
        "can shrink": lambda: os.memfd_create("x", os.MFD_ALLOW_SEALING),
        "short": lambda: rig.exported_fd(rig.exportable(4096)),
    }
    with tempfile.TemporaryFile() as file:
        file.write(bytes(SIZE))
        file.flush()
        descriptor = file.fileno() if kind == "file" else make[kind]()
        if kind == "can shrink":
            os.ftruncate(descriptor, SIZE)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: rig.imported(descriptor))


def test_exported_memory_cannot_be_truncated(rig) -> None:
    descriptor = rig.exported_fd(rig.exportable())
    for size in (0, 4096, 1 << 20):
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, size)
    os.close(descriptor)


def test_no_descriptor_stays_open_after_its_memory_is_freed(rig, child) -> None:
    gc.collect()  # memory that other tests left
    before = memory_descriptors()
    child("allocate", "theirs", SIZE, 1)
    theirs = rig.opened(child.handle("theirs"))
    mine = rig.exportable()
    ze.zeMemGetIpcHandle(rig.context, mine)
    descriptor = rig.exported_fd(mine)
    again = rig.imported(descriptor)
    os.close(descriptor)
    assert memory_descriptors() > before
    ze.zeMemCloseIpcHandle(rig.context, theirs)
    ze.zeMemFree(rig.context, mine)
    held = memory_descriptors()
    ze.zeMemFree(rig.context, again)
    assert memory_descriptors() < held
    del theirs, mine, again  # references to the bytes keep the mapping
    assert memory_descriptors() == before
    rig.exportable()
    rig.opened(ze.zeMemGetIpcHandle(rig.context, rig.exportable()))
    ze.zeContextDestroy(rig.context)
    assert memory_descriptors() == before


def test_without_free_descriptors_export_and_import_fail(rig, no_descriptors) -> None:
    mine = rig.exportable()
    handle = ze.zeMemGetIpcHandle(rig.context, mine)
    other, descriptor = rig.exportable(), rig.exported_fd(mine)
    elsewhere = ze.ze_ipc_mem_handle_t((9999).to_bytes(4, "little") + handle.data[4:])
    for call in (
        rig.exportable,
        lambda: rig.exported_fd(mine),
        lambda: rig.imported(descriptor),
        lambda: rig.opened(handle),
        lambda: ze.zeMemGetIpcHandle(rig.context, other),
    ):
        with no_descriptors():
            rig.fails(r.ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY, call)
        call()
    with no_descriptors():
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: rig.opened(elsewhere))
    os.close(descriptor)
