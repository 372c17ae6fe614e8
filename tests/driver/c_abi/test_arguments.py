"""Arguments that are wrong: each call returns a result code, and the library goes on."""

from __future__ import annotations

import ctypes
import os

import pytest
from tests.driver.c_abi.direct import carry_out
from tests.driver.c_abi.library import (
    INVALID_ARGUMENT,
    INVALID_ENUMERATION,
    INVALID_NULL_HANDLE,
    INVALID_NULL_POINTER,
    INVALID_SIZE,
    SUCCESS,
    UNINITIALIZED,
    UNSUPPORTED_FEATURE,
    argument_types,
)

from driver_layer.c_abi.declarations import at
from driver_layer.c_abi.description.language import description
from driver_layer.c_abi.handle_table import HANDLES
from driver_layer.c_abi.host import Host
from driver_layer.testing.blobs import dense_blob

FOREIGN = 0xDEADBEE0


def test_a_null_handle_is_reported_by_every_function(rig) -> None:
    for function, call in rig.npu.functions.values():
        parameters = function.parameters or ()
        first = next((p for p in parameters if p.is_handle and not p.way), None)
        if first is None or first.optional or call(*_zeros(function)) == UNSUPPORTED_FEATURE:
            continue
        given = [
            rig.buffer(bytes(16384)) if kind is ctypes.c_void_p and parameter is not first else 0
            for parameter, kind in zip(parameters, argument_types(function), strict=True)
            if kind in (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t)
        ]
        if len(given) == len(parameters):
            code = call(*given)
            assert code in (INVALID_NULL_HANDLE, UNSUPPORTED_FEATURE), function.name


def _zeros(function) -> list[object]:
    return [kind() for kind in argument_types(function)]


def test_all_zeros_give_a_code_in_every_function(rig) -> None:
    for name, (function, call) in rig.npu.functions.items():
        if function.parameters and name not in ("zeInit", "zesInit"):
            assert call(*_zeros(function)) not in (SUCCESS, 0x7FFFFFFE), name


def test_foreign_freed_and_mistaken_handles_are_never_read_through(rig) -> None:
    npu = rig.npu
    assert npu.zeContextGetStatus(FOREIGN) == INVALID_ARGUMENT
    assert npu.zeCommandListClose(rig.queue) == INVALID_ARGUMENT
    commands = rig.list()
    assert npu.zeCommandListDestroy(commands) == SUCCESS
    assert npu.zeCommandListClose(commands) == INVALID_ARGUMENT
    assert npu.zeCommandListDestroy(commands) == INVALID_ARGUMENT
    assert npu.zeDeviceGetProperties(rig.context, rig.buffer(bytes(1024))) == INVALID_ARGUMENT


def test_an_object_has_one_handle_and_none_after_its_end(direct) -> None:
    rig = direct
    before = len(HANDLES)
    lists = [rig.list() for _ in range(20)]
    assert len(set(lists)) == 20
    assert len(HANDLES) == before + 20
    for one in lists:
        assert rig.npu.zeCommandListDestroy(one) == SUCCESS
    assert len(HANDLES) == before
    one, place = rig.buffer((1).to_bytes(4, "little")), rig.buffer(bytes(8))
    assert rig.npu.zeDeviceGet(rig.driver, one, place) == SUCCESS
    assert at("uint64_t", place)[0] == rig.device


def test_null_pointers_are_reported(rig) -> None:
    npu, desc = rig.npu, rig.struct("ze_command_list_desc_t")
    create = npu.zeCommandListCreate
    place = rig.buffer(bytes(8))
    assert create(rig.context, rig.device, None, place) == INVALID_NULL_POINTER
    assert create(rig.context, rig.device, desc, None) == INVALID_NULL_POINTER
    assert npu.zeDriverGet(None, None) == INVALID_NULL_POINTER
    assert npu.pfnCreate2(rig.context, rig.device, None, place) == INVALID_NULL_POINTER
    assert npu.zeCommandListAppendBarrier(rig.list(), None, 2, None) == INVALID_SIZE
    assert npu.zeCommandListAppendBarrier(rig.list(), None, 1 << 31, desc) == INVALID_SIZE
    assert npu.zeMemFree(rig.context, None) == INVALID_NULL_POINTER


def test_who_asks_for_other_devices_gets_none(npu, rig) -> None:
    gpu, npu_only = 1, 2
    count = rig.buffer(bytes(4))
    assert npu.zeInit(gpu) == UNINITIALIZED
    assert npu.zeInit(npu_only) == SUCCESS
    for flags, code in ((gpu, UNINITIALIZED), (gpu | npu_only, SUCCESS)):
        desc = rig.struct("ze_init_driver_type_desc_t", flags=flags)
        assert npu.zeInitDrivers(count, None, desc) == code


def test_a_chain_skips_unknown_structures_and_may_not_be_endless(rig) -> None:
    npu = rig.npu
    known = rig.struct("ze_mutable_command_list_exp_desc_t")
    unknown = rig.struct("ze_fence_desc_t", pNext=known)
    desc = rig.struct("ze_command_list_desc_t", pNext=unknown)
    commands = npu.make("zeCommandListCreate", rig.context, rig.device, desc)
    flags = rig.struct("ze_mutable_command_id_exp_desc_t", flags=1 << 7)
    assert npu.make("zeCommandListGetNextCommandIdExp", commands, flags) == 0
    rig.read("ze_fence_desc_t", unknown).pNext = unknown
    assert (
        npu.zeCommandListCreate(rig.context, rig.device, desc, rig.buffer(bytes(8)))
        == INVALID_ARGUMENT
    )


def test_a_number_outside_of_an_enumeration_is_reported(rig) -> None:
    desc = rig.struct("ze_command_queue_desc_t", mode=77)
    create = rig.npu.zeCommandQueueCreate
    assert create(rig.context, rig.device, desc, rig.buffer(bytes(8))) == INVALID_ENUMERATION


def test_a_structure_with_another_stype_is_read_by_its_place(rig) -> None:
    """The public driver does so, too: ``stype`` matters in chains alone."""
    desc = rig.struct("ze_command_list_desc_t")
    rig.read("ze_command_list_desc_t", desc).stype = 0x777
    assert rig.npu.make("zeCommandListCreate", rig.context, rig.device, desc)


def test_a_caller_without_room_learns_the_length_and_one_with_less_gets_less(rig) -> None:
    npu, count = rig.npu, rig.buffer(bytes(8))
    number = at("uint32_t", count)
    assert npu.zeDriverGetExtensionProperties(rig.driver, count, None) == SUCCESS
    total = number[0]
    room = rig.buffer(b"\xee" * 260 * (total + 1))
    number[0] = 2
    assert npu.zeDriverGetExtensionProperties(rig.driver, count, room) == SUCCESS
    assert number[0] == 2
    assert bytes(rig.view(room, 1).data.cast("B")[:3]) == b"ZE_"
    assert at("uint8_t", room)[260 * 2] == 0xEE
    number[0] = total + 1
    assert npu.zeDriverGetExtensionProperties(rig.driver, count, room) == SUCCESS
    assert number[0] == total


def test_the_text_of_an_error_can_be_asked_for(rig) -> None:
    npu, place = rig.npu, rig.buffer(bytes(8))
    blob = b"no blob at all"
    created = npu.pfnCreate2(rig.context, rig.device, rig.desc_of(blob), place)
    assert created == INVALID_ARGUMENT
    assert npu.zeDriverGetLastErrorDescription(rig.driver, place) == SUCCESS
    text = ctypes.string_at(at("uint64_t", place)[0])
    assert b"magic" in text or b"ELF" in text
    size = rig.buffer(bytes(8))
    assert npu.pfnBuildLogGetString(None, size, None) == SUCCESS
    log = rig.buffer(bytes(at("uint32_t", size)[0]))
    assert npu.pfnBuildLogGetString(None, size, log) == SUCCESS
    assert ctypes.string_at(log) == text


def test_the_build_log_of_a_failed_creation_is_a_handle(rig) -> None:
    npu, graph, log = rig.npu, rig.buffer(bytes(8)), rig.buffer(bytes(8))
    code = npu.pfnCreate3(rig.context, rig.device, rig.desc_of(b"no blob"), graph, log)
    assert code == INVALID_ARGUMENT
    handle, size = at("uint64_t", log)[0], rig.buffer(bytes(8))
    assert npu.pfnBuildLogGetString2(handle, size, None) == SUCCESS
    assert at("uint32_t", size)[0] > 1
    assert npu.pfnBuildLogDestroy(handle) == SUCCESS
    assert (
        npu.pfnCreate3(rig.context, rig.device, rig.desc_of(dense_blob()), graph, None) == SUCCESS
    )
    assert npu.pfnDestroy(at("uint64_t", graph)[0]) == SUCCESS


@pytest.mark.parametrize(
    ("error", "traced"),
    [(ZeroDivisionError("a defect"), True), (OSError("no memory to map a library"), False)],
)
def test_a_failure_of_the_driver_itself_is_a_code_and_a_line_of_the_log(
    direct, monkeypatch: pytest.MonkeyPatch, caplog, error: Exception, traced: bool
) -> None:
    """Only a defect has a traceback."""
    rig = direct
    from driver_layer.ze.event import ze_event_handle_t

    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr(ze_event_handle_t, "become", broken)
    pool_desc = rig.struct("ze_event_pool_desc_t", count=1)
    pool = rig.npu.make("zeEventPoolCreate", rig.context, pool_desc, 0, None)
    event = rig.npu.make("zeEventCreate", pool, rig.struct("ze_event_desc_t"))
    assert rig.npu.zeEventHostSignal(event) == 0x7FFFFFFE
    assert str(error) in caplog.text
    assert ("Traceback" in caplog.text) is traced


def test_every_structure_of_the_description_can_be_declared() -> None:
    """Sizes of some, from a C compiler and the public headers."""
    from driver_layer.c_abi.declarations import ffi

    sizes = {name: ffi.sizeof(name) for name in description().structs}
    assert sizes["ze_device_properties_t"] == 368
    assert sizes["ze_graph_argument_properties_3_t"] == 8776
    assert sizes["ze_graph_argument_metadata_t"] == 8800
    assert sizes["ze_profiling_task_info"] == 344


def test_texts_for_the_host_stay_until_the_room_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later ones are written over the first ones, and long ones get more room."""
    monkeypatch.setattr("driver_layer.c_abi.host._ROOM", 64)
    kept = Host(os.getpid(), carry_out)
    first = kept.keep_text("a" * 30)
    assert kept.keep_text("a" * 30) == first
    assert ctypes.string_at(kept.keep_text("b" * 30)) == b"b" * 30
    assert ctypes.string_at(first) == b"a" * 30
    assert kept.keep_text("c" * 30) == first
    assert ctypes.string_at(kept.keep_text("d" * 100)) == b"d" * 100
