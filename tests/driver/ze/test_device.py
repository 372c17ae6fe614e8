"""Drivers, devices and memory: the public driver's behaviour, with its result codes."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from driver_layer import ze
from driver_layer.abi.platforms import PLATFORMS
from driver_layer.testing.blobs import dense_blob, is_expected
from driver_layer.ze import ze_result_t as r


class TestDriverAndDevice:
    def test_the_driver_offers_the_extensions_of_the_public_one(self, rig) -> None:
        driver = rig.device.driver
        listed = {e.name: e.version for e in ze.zeDriverGetExtensionProperties(driver)}
        graphs = {f"ZE_extension_graph_1_{minor}": 1 << 16 | minor for minor in range(2, 9)}
        assert listed == {
            "ZE_extension_graph": 1 << 16 | 18,
            "ZE_extension_profiling_data": 1 << 16,
            "ZE_extension_command_queue_npu": 1 << 16 | 1,
            "ZE_extension_context_npu": 1 << 16,
            "ZE_extension_external_memmap_sysmem": 1 << 16,
            "ZE_experimental_mutable_command_list": 1 << 16 | 1,
            **graphs,
        }
        for name in graphs:
            assert ze.zeDriverGetExtensionFunctionAddress(driver, name) is rig.table
        get = ze.zeDriverGetExtensionFunctionAddress
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: get(driver, "ZE_extension_nothing"))
        assert ze.zeDriverGetApiVersion(driver) >> 16 == 1

    def test_the_device_is_an_npu(self, rig) -> None:
        properties = ze.zeDeviceGetProperties(rig.device)
        assert properties.type is ze.ze_device_type_t.ZE_DEVICE_TYPE_VPU
        assert properties.name == "Intel(R) AI Boost"
        assert (properties.deviceId, properties.numSlices) == (0x643E, 6)
        assert properties.timerResolution == 19_200_000
        assert properties.flags == 1
        gops = properties.coreClockRate / 1e9 * properties.numSlices
        assert round(gops * properties.physicalEUSimdWidth / 1000) in range(40, 50), "TOPS"
        groups = ze.zeDeviceGetCommandQueueGroupProperties(rig.device)
        assert [(group.flags, group.numQueues) for group in groups] == [(3, 1), (2, 1)]
        (memory,) = ze.zeDeviceGetMemoryProperties(rig.device)
        assert (memory.name, memory.maxBandwidth) == ("DDR", 136000)

    @pytest.mark.parametrize(
        ("name", "device_id"),
        [("METEORLAKE", 0x7D1D), ("LUNARLAKE", 0x643E), ("PANTHERLAKE", 0xB03E), ("5010", 0xB03E)],
    )
    def test_the_environment_chooses_the_platform(self, monkeypatch, name, device_id) -> None:
        monkeypatch.setenv("ZE_INTEL_NPU_PLATFORM_OVERRIDE", name)
        (driver,) = ze.zeInitDrivers(0)
        assert ze.zeDeviceGetProperties(ze.zeDeviceGet(driver)[0]).deviceId == device_id

    def test_an_unknown_platform_error_lists_the_supported_ones(self, monkeypatch) -> None:
        monkeypatch.setenv("ZE_INTEL_NPU_PLATFORM_OVERRIDE", "CHERRYLAKE")
        with pytest.raises(ze.ZeError, match="LUNARLAKE") as caught:
            ze.zeInit(0)
        assert caught.value.code is r.ZE_RESULT_ERROR_INVALID_ARGUMENT

    def test_invalid_handles_are_rejected(self, rig) -> None:
        rig.fails(r.ZE_RESULT_ERROR_INVALID_NULL_HANDLE, lambda: ze.zeDeviceGet(None))
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: ze.zeDeviceGet(rig.device))
        ze.zeContextDestroy(rig.context)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: ze.zeMemAllocHost(rig.context, 64))

    def test_what_the_device_lacks_is_reported_as_such(self, rig) -> None:
        device = rig.device
        assert ze.zeDeviceGetSubDevices(device) == []
        assert ze.zeDeviceGetCacheProperties(device) == []
        assert ze.zeDeviceGetComputeProperties(device).maxTotalGroupSize == 0
        assert ze.zeDeviceGetImageProperties(device).maxImageDims2D == 0
        assert ze.zeDeviceGetModuleProperties(device).spirvVersionSupported == 0
        other = ze.simulated_driver("3720").device
        assert ze.zeDeviceGetP2PProperties(device, other).flags == 0
        assert ze.zeDeviceCanAccessPeer(device, device)
        assert not ze.zeDeviceCanAccessPeer(device, other)
        access = ze.zeDeviceGetMemoryAccessProperties(device)
        assert (access.hostAllocCapabilities, access.sharedSystemAllocCapabilities) == (1, 0)

    def test_device_and_context_are_well(self, rig) -> None:
        assert ze.zeDeviceGetStatus(rig.device) is r.ZE_RESULT_SUCCESS
        assert ze.zeContextGetStatus(rig.context) is r.ZE_RESULT_SUCCESS
        ze.zeContextSystemBarrier(rig.context, rig.device)
        memory = ze.zeMemAllocHost(rig.context, 100)
        for call in (ze.zeContextMakeMemoryResident, ze.zeContextEvictMemory):
            call(rig.context, rig.device, memory, 100)
            code = r.ZE_RESULT_ERROR_INVALID_ARGUMENT
            rig.fails(code, lambda call=call: call(rig.context, rig.device, memory, 101))
        driver = rig.device.driver
        assert "101 bytes" in ze.zeDriverGetLastErrorDescription(driver)
        assert ze.zeDriverGetIpcProperties(driver).flags == 1

    def test_host_and_device_times_advance_together(self, rig) -> None:
        host, device = ze.zeDeviceGetGlobalTimestamps(rig.device)
        later_host, later_device = ze.zeDeviceGetGlobalTimestamps(rig.device)
        assert later_host >= host
        assert later_device >= device
        assert ze.zeDevicePciGetPropertiesExt(rig.device).address.device == 0xB

    def test_the_context_extension_releases_prepared_programs(self, rig, x) -> None:
        driver = rig.device.driver
        table = ze.zeDriverGetExtensionFunctionAddress(driver, ze.CONTEXT_EXTENSION)
        table.pfnSetProperties(rig.context, ze.ze_context_properties_npu_ext_t(1))
        unknown = ze.ze_context_properties_npu_ext_t(2)
        code = r.ZE_RESULT_ERROR_INVALID_ENUMERATION
        rig.fails(code, lambda: table.pfnSetProperties(rig.context, unknown))
        graph = rig.graph(dense_blob())
        y = rig.arguments(graph, x)
        commands = rig.recorded(graph)
        programs = rig.device.npu._core._cached
        assert programs[rig.context.space]
        table.pfnReleaseMemory(rig.context)
        assert rig.context.space not in programs
        rig.execute(commands)
        assert is_expected(rig.values(y), x)

    def test_the_driver_extension_returns_tables_by_version(self, rig) -> None:
        driver = rig.device.driver
        table = ze.zeDriverGetExtensionFunctionAddress(driver, ze.DRIVER_EXTENSION)
        wanted = ze.ze_driver_extension_npu_ext_t("ZE_extension_graph", 1 << 16 | 18)
        assert table.pfnGetExtension(driver, wanted) is rig.table
        newer = ze.ze_driver_extension_npu_ext_t("ZE_extension_graph", 1 << 16 | 19)
        code = r.ZE_RESULT_ERROR_UNSUPPORTED_VERSION
        rig.fails(code, lambda: table.pfnGetExtension(driver, newer))

    def test_runtime_requirements_are_those_of_the_blob(self, rig) -> None:
        desc = ze.ze_runtime_requirements_graph_desc_t(rig.graph(dense_blob()))
        text = ze.zeDeviceGetRuntimeRequirements(rig.device, desc)
        assert text.startswith("npu=4000;t=")
        assert ze.zeDeviceGetRuntimeRequirementsKey(rig.device) == "INTEL.L0.NPU"
        other = ze.simulated_driver("3720").device
        for device, asked, expected in (
            (rig.device, text, "REQUIREMENTS_MET"),
            (other, text, "NOT_APPLICABLE"),
            (rig.device, text.replace("elf=1", "elf=9"), "REQUIREMENTS_NOT_MET"),
            (rig.device, text.replace("t=", "t=99"), "REQUIREMENTS_NOT_MET"),
            (rig.device, "npu=4000;x=1", "NOT_APPLICABLE"),
            (rig.device, "\0" * 100, "NOT_APPLICABLE"),
        ):
            found = ze.zeDeviceValidateRuntimeRequirements(device, asked).result
            assert found.name.endswith(f"RESULT_{expected}"), asked

    def test_graph_properties_have_the_versions(self, rig) -> None:
        found = rig.table.pfnDeviceGetGraphProperties2(rig.device)
        assert found.graphExtensionVersion == 1 << 16 | 18
        assert found.graphFormatsSupported & ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE
        assert (found.elfVersion.major, found.runtimeVersion.major) == (1, 11)

    @pytest.mark.parametrize("name", PLATFORMS)
    def test_graph_properties_have_the_versions_of_the_platform(self, name) -> None:
        device = ze.simulated_driver(name).device
        table = ze.zeDriverGetExtensionFunctionAddress(device.driver, "ZE_extension_graph")
        found = table.pfnDeviceGetGraphProperties2(device)
        platform = PLATFORMS[name]
        for version, wanted in (
            (found.elfVersion, platform.loader_abi),
            (found.runtimeVersion, platform.firmware_inference),
        ):
            assert (version.major, version.minor) == (wanted.major, wanted.minor)


class TestMemory:
    def test_only_host_and_shared_memory_have_a_host_view(self, rig) -> None:
        assert not ze.zeMemAllocHost(rig.context, 64).data.any()
        assert not ze.zeMemAllocShared(rig.context, 64, 0, rig.device).data.any()
        hidden = ze.zeMemAllocDevice(rig.context, 64, 0, rig.device)
        rig.fails(r.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, lambda: hidden.data)

    def test_invalid_sizes_and_alignments_are_rejected(self, rig) -> None:
        allocate = ze.zeMemAllocHost
        rig.fails(r.ZE_RESULT_ERROR_UNSUPPORTED_SIZE, lambda: allocate(rig.context, 0))
        rig.fails(r.ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT, lambda: allocate(rig.context, 64, 3))
        assert allocate(rig.context, 64, 4096).address % 4096 == 0
        rig.fails(r.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY, lambda: allocate(rig.context, 1 << 50))

    def test_host_memory_is_mapped_in_place(self, rig) -> None:
        host = np.frombuffer(mmap.mmap(-1, 2 * 4096), np.uint8)
        mapped = self.map_host(rig, host)
        host[5000] = 7
        assert mapped.data[5000] == 7
        assert ze.zeMemGetAddressRange(rig.context, mapped.address) == (mapped.address, 8192)

    def test_read_only_host_memory_can_only_be_mapped_read_only(self, rig, tmp_path) -> None:
        path = tmp_path / "weights"
        path.write_bytes(bytes(5000))
        with path.open("rb") as file:
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        host = np.frombuffer(pages, np.uint8)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: self.map_host(rig, host))
        flag = ze.ze_host_mem_alloc_flags_t.ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY
        mapped = self.map_host(rig, host, flag)
        assert not mapped.allocation.writable

    def test_mapped_memory_must_be_complete_and_aligned_to_a_page(self, rig) -> None:
        host = np.frombuffer(mmap.mmap(-1, 4096), np.uint8)
        rig.fails(r.ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT, lambda: self.map_host(rig, host[64:]))
        desc = ze.ze_host_mem_alloc_desc_t(pNext=ze.ze_external_memmap_sysmem_ext_desc_t(host))
        allocate = ze.zeMemAllocHost
        rig.fails(
            r.ZE_RESULT_ERROR_UNSUPPORTED_SIZE,
            lambda: allocate(rig.context, 64, host_desc=desc),
        )

    @staticmethod
    def map_host(rig, host, flags=ze.ze_host_mem_alloc_flags_t.NONE):
        desc = ze.ze_host_mem_alloc_desc_t(flags, ze.ze_external_memmap_sysmem_ext_desc_t(host))
        return ze.zeMemAllocHost(rig.context, host.nbytes, host_desc=desc)

    def test_the_allocation_of_a_pointer_is_found(self, rig) -> None:
        memory = ze.zeMemAllocHost(rig.context, 100)
        assert ze.zeMemGetAddressRange(rig.context, memory.address + 99) == (memory.address, 100)
        kind = ze.zeMemGetAllocProperties(rig.context, memory.address + 1).type
        assert kind is ze.ze_memory_type_t.ZE_MEMORY_TYPE_HOST
        kind = ze.zeMemGetAllocProperties(rig.context, 0x1234).type
        assert kind is ze.ze_memory_type_t.ZE_MEMORY_TYPE_UNKNOWN
        beyond = memory.address + 100
        get = ze.zeMemGetAddressRange
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: get(rig.context, beyond))

    def test_memory_can_be_freed_only_once(self, rig) -> None:
        before = rig.table.pfnQueryContextMemory(rig.context).allocated
        memory = ze.zeMemAllocHost(rig.context, 4096)
        assert rig.table.pfnQueryContextMemory(rig.context).allocated == before + 4096
        ze.zeMemFree(rig.context, memory)
        assert rig.table.pfnQueryContextMemory(rig.context).allocated == before
        free = ze.zeMemFree
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: free(rig.context, memory))

    def test_memory_of_one_context_cannot_be_used_in_another(self, rig) -> None:
        other = ze.zeContextCreate(rig.device.driver)
        memory = ze.zeMemAllocHost(other, 4096)
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        mine = ze.zeMemAllocHost(rig.context, 64)
        copy = ze.zeCommandListAppendMemoryCopy
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: copy(commands, mine, memory, 64))
