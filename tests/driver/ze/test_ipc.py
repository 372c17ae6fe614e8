"""IPC handles: memory of one process that another process opens."""

from __future__ import annotations

import os

import numpy as np
import pytest

from driver_layer import ze
from driver_layer.npu.shareable import CAN_SHARE
from driver_layer.ze import ze_result_t as r

pytestmark = pytest.mark.skipif(not CAN_SHARE, reason="the host has no memfd")

OPAQUE = ze.ze_external_memory_type_flags_t.ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD
SIZE = 10_000


def test_both_processes_see_what_the_other_writes(rig, child) -> None:
    child("allocate", "theirs", SIZE, 7)
    mine = rig.opened(child.handle("theirs"))
    assert mine.size == SIZE
    assert (mine.data == 7).all()
    child("write", "theirs", SIZE - 1, 9)
    assert mine.data[SIZE - 1] == 9
    mine.data[0] = 8
    assert child("read", "theirs", 0) == 8


def test_the_device_computes_on_another_processs_memory(rig, child) -> None:
    child("allocate", "theirs", SIZE, 5)
    theirs = rig.opened(child.handle("theirs"))
    target = ze.zeMemAllocShared(rig.context, SIZE, 0, rig.device)
    commands = ze.zeCommandListCreate(rig.context, rig.device)
    ze.zeCommandListAppendMemoryCopy(commands, target, theirs, SIZE)
    ze.zeCommandListAppendMemoryFill(commands, theirs, b"\3", SIZE)
    ze.zeCommandListClose(commands)
    rig.execute(commands)
    assert (target.data == 5).all()
    assert child("read", "theirs", SIZE // 2) == 3


def test_opened_memory_outlives_the_exporters_free_and_its_death(rig, child) -> None:
    child("allocate", "freed", SIZE, 1)
    child("allocate", "held", SIZE, 2)
    freed, held = (rig.opened(child.handle(name)) for name in ("freed", "held"))
    child("free", "freed")
    assert (freed.data == 1).all()
    child.kill()
    assert (freed.data == 1).all()
    assert (held.data == 2).all()


@pytest.mark.matrix
@pytest.mark.parametrize("ends", ["free", "put", "death"])
def test_a_handle_is_invalid_after_the_exporters_free_put_or_death(rig, child, ends) -> None:
    child("allocate", "theirs", SIZE, 1)
    handle = child.handle("theirs")
    if ends == "free":
        child("free", "theirs")
        child("allocate", "other", SIZE, 2)
        child("handle", "other")  # a descriptor that may well have the old one's number
    elif ends == "put":
        mine = rig.exportable()
        handle = ze.zeMemGetIpcHandle(rig.context, mine)
        ze.zeMemPutIpcHandle(rig.context, handle)
        assert child("open_handle", "x", handle.data.hex()) == "ZE_RESULT_ERROR_INVALID_ARGUMENT"
    else:
        child.kill()
    rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: rig.opened(handle))


def test_a_handle_whose_descriptor_was_sent_outlives_the_exporter(rig, child) -> None:
    child("allocate", "theirs", SIZE, 6)
    handle = child.handle("theirs")
    child("send", "theirs")
    descriptor = child.receive()
    child.kill()
    passed = ze.ze_ipc_mem_handle_t(descriptor.to_bytes(4, "little") + handle.data[4:])
    mine = rig.opened(passed)
    os.close(descriptor)
    assert (mine.data == 6).all()


def test_each_opening_has_its_own_address_and_is_closed_once(rig, child) -> None:
    child("allocate", "theirs", SIZE, 1)
    handle = child.handle("theirs")
    one, two = rig.opened(handle), rig.opened(handle)
    assert one.address != two.address
    one.data[0] = 4
    assert two.data[0] == 4
    rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: ze.zeMemFree(rig.context, one))
    close = ze.zeMemCloseIpcHandle
    close(rig.context, one)
    rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: close(rig.context, one))
    assert two.data[0] == 4
    close(rig.context, two)
    mine = rig.exportable()
    rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: close(rig.context, mine))


def test_a_handle_stays_the_same_until_it_is_put_back_once(rig) -> None:
    mine = rig.exportable()
    first = ze.zeMemGetIpcHandle(rig.context, mine)
    assert len(first.data) == ze.ZE_MAX_IPC_HANDLE_SIZE
    assert ze.zeMemGetIpcHandle(rig.context, mine) == first
    put = ze.zeMemPutIpcHandle
    put(rig.context, first)
    rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: put(rig.context, first))
    assert rig.opened(ze.zeMemGetIpcHandle(rig.context, mine)).size == SIZE


def test_device_memory_has_no_host_view_in_the_other_process_either(rig) -> None:
    desc = ze.ze_device_mem_alloc_desc_t(pNext=ze.ze_external_memory_export_desc_t(OPAQUE))
    hidden = ze.zeMemAllocDevice(rig.context, SIZE, 0, rig.device, desc)
    again = rig.opened(ze.zeMemGetIpcHandle(rig.context, hidden))
    rig.fails(r.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, lambda: again.data)


def test_memory_that_cannot_be_exported_has_no_handle(rig) -> None:
    get = ze.zeMemGetIpcHandle
    private = ze.zeMemAllocHost(rig.context, SIZE)
    error = rig.fails(r.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, lambda: get(rig.context, private))
    assert "ze_external_memory_export_desc_t" in str(error)
    shared = ze.zeMemAllocShared(rig.context, SIZE, 0, rig.device)
    rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: get(rig.context, shared))
    gone = rig.exportable()
    ze.zeMemFree(rig.context, gone)
    rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: get(rig.context, gone))


def test_bytes_that_are_not_a_handle_are_rejected(rig) -> None:
    good = ze.zeMemGetIpcHandle(rig.context, rig.exportable()).data
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
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda h=handle: rig.opened(h))
    larger = good[:16] + (1 << 40).to_bytes(8, "little") + good[24:]
    rig.fails(
        r.ZE_RESULT_ERROR_INVALID_ARGUMENT,
        lambda: rig.opened(ze.ze_ipc_mem_handle_t(larger)),
    )


def test_unknown_flags_are_rejected(rig) -> None:
    handle = ze.zeMemGetIpcHandle(rig.context, rig.exportable())
    rig.fails(
        r.ZE_RESULT_ERROR_INVALID_ENUMERATION,
        lambda: ze.zeMemOpenIpcHandle(rig.context, rig.device, handle, ze.ze_ipc_memory_flags_t(4)),
    )
