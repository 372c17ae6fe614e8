"""Function tables for loaders, and the functions of a loader."""

from __future__ import annotations

import ctypes

from tests.driver.c_abi.library import (
    INVALID_NULL_POINTER,
    SUCCESS,
    UNSUPPORTED_FEATURE,
    UNSUPPORTED_VERSION,
)

from driver_layer.c_abi.description.language import description

UNTOUCHED = 0x5A5A


def table(npu, getter: str, version: tuple[int, int], room: int = 64) -> list[int]:
    fields = (ctypes.c_uint64 * room)(*[UNTOUCHED] * room)
    packed = version[0] << 16 | version[1]
    assert getattr(npu.library, getter)(packed, ctypes.byref(fields)) == SUCCESS
    return list(fields)


def test_only_fields_that_exist_at_the_version_are_written(npu) -> None:
    for each in description().tables:
        if not each.api:
            continue
        for minor in (0, 4, 9, 17):
            found = table(npu, f"{each.api}Get{each.name}ProcAddrTable", (1, minor))
            for function, field in zip(each.functions, found, strict=False):
                assert (field != UNTOUCHED) == (function.since <= (1, minor)), function.name
            assert set(found[len(each.functions) :]) == {UNTOUCHED}


def test_tables_have_the_lengths_of_the_specification(npu) -> None:
    """Source: Level Zero 1.17, ze_ddi.h; 1.4 is what the oldest loader in use asks for."""
    lengths = {each.name: each.functions for each in description().tables if each.api == "ze"}
    assert {name: len(lengths[name]) for name in ("Driver", "Device", "CommandList", "Mem")} == {
        "Driver": 9,
        "Device": 28,
        "CommandList": 52,
        "Mem": 13,
    }
    assert sum(function.since <= (1, 4) for function in lengths["CommandList"]) == 28


def test_an_old_loader_finds_all_tables_that_it_needs(npu) -> None:
    """Loader 1.18.5 refuses a driver that lacks one. Source: level-zero v1.8.5, v1.18.5."""
    found = {f"{each.api}{each.name}" for each in description().tables if each.api}
    core = (
        "Global Driver Device Context CommandList CommandQueue Event EventPool Fence Image Kernel"
    )
    memory = "Mem Module ModuleBuildLog PhysicalMem Sampler VirtualMem"
    system = "Device Diagnostics Driver Engine FabricPort Fan Firmware Frequency Led Memory"
    others = "PerformanceFactor Power Psu Ras Scheduler Standby Temperature"
    tools = "CommandList Context Debug Device Kernel MetricGroup Metric MetricQueryPool MetricQuery"
    more = "MetricStreamer Module TracerExp"
    needed = {("ze", core), ("ze", memory), ("zes", system), ("zes", others)}
    needed |= {("zet", tools), ("zet", more)}
    assert {f"{api}{name}" for api, names in needed for name in names.split()} <= found


def test_a_table_needs_a_place_and_a_known_major_version(npu) -> None:
    get = npu.library.zeGetDriverProcAddrTable
    get.restype = ctypes.c_uint32
    assert get(1 << 16, None) == INVALID_NULL_POINTER
    assert get(2 << 16, ctypes.byref(ctypes.c_uint64())) == UNSUPPORTED_VERSION


def test_a_function_that_this_driver_lacks_says_so(npu) -> None:
    for name in ("zeKernelCreate", "zeImageCreate", "zeModuleCreate", "zeMemFreeExt"):
        call = getattr(npu.library, name)
        call.restype = ctypes.c_uint32
        assert call(None, None, None) == UNSUPPORTED_FEATURE


class Version(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 64),
        ("specification", ctypes.c_uint32),
        ("numbers", ctypes.c_int * 3),
    )


def test_the_library_stands_in_for_a_loader(npu) -> None:
    """OpenVINO's plugin asks the version before it calls zeInitDrivers: 1.18.5 or newer."""
    found = Version()
    assert npu.library.zelGetLoaderVersion(ctypes.byref(found)) == SUCCESS
    assert found.name == b"loader"
    assert found.specification == 1 << 16 | 17
    assert tuple(found.numbers) >= (1, 18, 5)
    count = ctypes.c_size_t(0)
    assert npu.library.zelLoaderGetVersions(ctypes.byref(count), None) == SUCCESS
    assert count.value == 1
    assert npu.library.zelLoaderGetVersions(ctypes.byref(count), ctypes.byref(found)) == SUCCESS
    handle = ctypes.c_void_p()
    translate = npu.library.zelLoaderTranslateHandle
    assert translate(0, ctypes.c_void_p(0x1234), ctypes.byref(handle)) == SUCCESS
    assert handle.value == 0x1234
