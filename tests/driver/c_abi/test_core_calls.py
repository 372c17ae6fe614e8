"""Immediate lists, order, timestamps, properties and the smaller extensions through the library.

Source: linux-npu-driver v1.32.1, validation/umd-test (test_immediate_cmdlist.cpp,
test_inorder_exec.cpp, test_event_sync.cpp, test_device.cpp, test_idle_optimizations.cpp,
test_tensor_strides.cpp).
"""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest
from tests.driver.c_abi.library import (
    FOREVER,
    INVALID_ARGUMENT,
    NOT_READY,
    SUCCESS,
    UNINITIALIZED,
    UNSUPPORTED_FEATURE,
)

from driver_layer.c_abi.declarations import at, ffi
from driver_layer.testing.blobs import DEPTH, ROWS, is_expected

X = np.linspace(-1, 1, ROWS * DEPTH, dtype=np.float32).reshape(ROWS, DEPTH)
DEVICE_SYNC = 2


class TestImmediateLists:
    @pytest.fixture
    def immediate(self, rig) -> int:
        desc = rig.struct("ze_command_queue_desc_t")
        return rig.npu.make("zeCommandListCreateImmediate", rig.context, rig.device, desc)

    def test_create_close_reset_and_try_to_execute(self, rig, immediate) -> None:
        npu = rig.npu
        for commands, expected in ((immediate, 1), (rig.list(), 0)):
            answer = rig.buffer(bytes(1))
            assert npu.zeCommandListIsImmediate(commands, answer) == SUCCESS
            assert at("uint8_t", answer)[0] == expected
        assert npu.zeCommandListClose(immediate) == UNINITIALIZED
        assert npu.zeCommandListReset(immediate) == SUCCESS
        lists = rig.buffer(immediate.to_bytes(8, "little"))
        execute = npu.zeCommandQueueExecuteCommandLists
        assert execute(rig.queue, 1, lists, None) == UNINITIALIZED

    def test_timestamps_are_written_in_order(self, rig, immediate) -> None:
        stamps = [rig.host(), rig.host()]
        for stamp in stamps:
            append = rig.npu.zeCommandListAppendWriteGlobalTimestamp
            assert append(immediate, stamp, None, 0, None) == SUCCESS
        assert rig.npu.zeCommandListHostSynchronize(immediate, FOREVER) == SUCCESS
        first, second = (at("uint64_t", stamp)[0] for stamp in stamps)
        assert 0 < first <= second

    def test_an_inference_runs_without_a_queue(self, rig, immediate) -> None:
        graph, x, y = rig.bound_graph()
        x[:] = X
        assert rig.npu.pfnAppendGraphExecute(immediate, graph, None, None, 0, None) == SUCCESS
        assert rig.npu.zeCommandListHostSynchronize(immediate, FOREVER) == SUCCESS
        assert is_expected(y, X)


class TestOrder:
    def test_submissions_of_an_in_order_queue_follow_each_other(self, rig) -> None:
        in_order = rig.struct("ze_command_queue_desc_npu_ext_2_t", options=DEVICE_SYNC)
        desc = rig.struct("ze_command_queue_desc_t", pNext=in_order)
        queue = rig.npu.make("zeCommandQueueCreate", rig.context, rig.device, desc)
        buffers = [rig.host(64) for _ in range(9)]
        ctypes.memset(buffers[0], 7, 64)
        handles = []
        for source, target in itertools.pairwise(buffers):
            handles.append(rig.list())
            copy = rig.npu.zeCommandListAppendMemoryCopy
            assert copy(handles[-1], target, source, 64, None, 0, None) == SUCCESS
            assert rig.npu.zeCommandListClose(handles[-1]) == SUCCESS
        for handle in handles:
            one = rig.buffer(handle.to_bytes(8, "little"))
            execute = rig.npu.zeCommandQueueExecuteCommandLists
            assert execute(queue, 1, one, None) == SUCCESS
        assert rig.npu.zeCommandQueueSynchronize(queue, FOREVER) == SUCCESS
        assert ctypes.string_at(buffers[-1], 64) == bytes([7]) * 64
        assert rig.npu.zeCommandQueueDestroy(queue) == SUCCESS

    def test_lists_of_two_queues_wait_for_each_other(self, rig) -> None:
        npu = rig.npu
        pool_desc = rig.struct("ze_event_pool_desc_t", count=2, flags=1)
        pool = npu.make("zeEventPoolCreate", rig.context, pool_desc, 0, None)
        events = [
            npu.make("zeEventCreate", pool, rig.struct("ze_event_desc_t", index=index))
            for index in range(2)
        ]
        low = rig.struct("ze_command_queue_desc_t", priority=1)
        queues = [rig.queue, npu.make("zeCommandQueueCreate", rig.context, rig.device, low)]
        lists = [rig.list(), rig.list()]
        waits = [rig.buffer(event.to_bytes(8, "little")) for event in events]
        barrier = npu.zeCommandListAppendBarrier
        assert barrier(lists[0], events[0], 1, waits[1]) == SUCCESS
        assert npu.zeCommandListAppendSignalEvent(lists[1], events[1]) == SUCCESS
        assert npu.zeCommandListAppendWaitOnEvents(lists[1], 1, waits[0]) == SUCCESS
        for queue, commands in zip(queues, lists, strict=True):
            assert npu.zeCommandListClose(commands) == SUCCESS
            one = rig.buffer(commands.to_bytes(8, "little"))
            assert npu.zeCommandQueueExecuteCommandLists(queue, 1, one, None) == SUCCESS
        for queue in queues:
            assert npu.zeCommandQueueSynchronize(queue, FOREVER) == SUCCESS
        assert npu.zeEventQueryStatus(events[0]) == SUCCESS
        assert npu.zeCommandQueueDestroy(queues[1]) == SUCCESS

    def test_a_wait_for_a_queue_ends_in_time(self, rig) -> None:
        npu = rig.npu
        pool_desc = rig.struct("ze_event_pool_desc_t", count=1)
        pool = npu.make("zeEventPoolCreate", rig.context, pool_desc, 0, None)
        event = npu.make("zeEventCreate", pool, rig.struct("ze_event_desc_t"))
        commands, waits = rig.list(), rig.buffer(event.to_bytes(8, "little"))
        assert npu.zeCommandListAppendWaitOnEvents(commands, 1, waits) == SUCCESS
        assert npu.zeCommandListClose(commands) == SUCCESS
        one = rig.buffer(commands.to_bytes(8, "little"))
        assert npu.zeCommandQueueExecuteCommandLists(rig.queue, 1, one, None) == SUCCESS
        assert npu.zeCommandQueueSynchronize(rig.queue, 1_000_000) == NOT_READY
        assert npu.zeEventHostSignal(event) == SUCCESS
        assert npu.zeCommandQueueSynchronize(rig.queue, FOREVER) == SUCCESS


class TestProperties:
    def test_the_plugins_facts(self, rig) -> None:
        """A driver's UUID, a version that has a clock in Hz, the PCI id, the type of the device."""
        driver, device = rig.struct("ze_driver_properties_t"), rig.struct("ze_device_properties_t")
        assert rig.npu.zeDriverGetProperties(rig.driver, driver) == SUCCESS
        of_driver = rig.read("ze_driver_properties_t", driver)
        assert bytes(of_driver.uuid.id).hex() == "017de9316b4d4fd4aa9b5bed77fc8e89"
        assert of_driver.driverVersion >= 1715354569
        assert rig.npu.zeDeviceGetProperties(rig.device, device) == SUCCESS
        found = rig.read("ze_device_properties_t", device)
        assert (found.type, found.vendorId, found.deviceId) == (5, 0x8086, 0x643E)
        assert bytes(found.uuid.id).hex() == "80d1d11eb73811eab3de0242ac130004"
        assert ffi.string(found.name) == b"Intel(R) AI Boost"
        assert found.numSlices == 6
        assert found.coreClockRate > 1_000_000_000

    @pytest.mark.parametrize(("stype", "resolution"), [(0x3, 52), (0x20006, 19_200_000)])
    def test_the_type_of_the_structure_chooses_the_unit_of_time(
        self, rig, stype, resolution
    ) -> None:
        silicon = rig.struct("ze_device_ip_version_ext_t", ipVersion=77)
        lists = rig.struct("ze_mutable_command_list_exp_properties_t", pNext=silicon)
        device = rig.struct("ze_device_properties_t", pNext=lists)
        found = rig.read("ze_device_properties_t", device)
        found.stype = stype
        assert rig.npu.zeDeviceGetProperties(rig.device, device) == SUCCESS
        assert (found.stype, found.timerResolution) == (stype, resolution)
        changeable = rig.read("ze_mutable_command_list_exp_properties_t", lists)
        assert changeable.mutableCommandFlags == 1 << 6 | 1 << 7
        assert rig.read("ze_device_ip_version_ext_t", silicon).ipVersion == 0

    def test_every_query_of_the_device_answers(self, rig) -> None:
        kinds = {
            "zeDeviceGetComputeProperties": "ze_device_compute_properties_t",
            "zeDeviceGetModuleProperties": "ze_device_module_properties_t",
            "zeDeviceGetMemoryAccessProperties": "ze_device_memory_access_properties_t",
            "zeDeviceGetImageProperties": "ze_device_image_properties_t",
            "zeDeviceGetExternalMemoryProperties": "ze_device_external_memory_properties_t",
            "zeDevicePciGetPropertiesExt": "ze_pci_ext_properties_t",
        }
        for function, kind in kinds.items():
            code = getattr(rig.npu, function)(rig.device, rig.struct(kind))
            assert code in (SUCCESS, UNSUPPORTED_FEATURE), function
        count = rig.buffer(bytes(4))
        assert rig.npu.zeDeviceGetSubDevices(rig.device, count, None) == SUCCESS
        assert at("uint32_t", count)[0] == 0
        assert rig.npu.zeDeviceGetStatus(rig.device) == SUCCESS
        assert rig.npu.zeContextGetStatus(rig.context) == SUCCESS

    def test_the_clocks_of_host_and_device_go_on(self, rig) -> None:
        host, device = rig.buffer(bytes(8)), rig.buffer(bytes(8))
        found = []
        for _ in range(2):
            assert rig.npu.zeDeviceGetGlobalTimestamps(rig.device, host, device) == SUCCESS
            found.append((at("uint64_t", host)[0], at("uint64_t", device)[0]))
        assert found[0][0] < found[1][0]
        assert found[0][1] <= found[1][1]

    def test_requirements_of_a_graph_are_met_by_its_device(self, rig) -> None:
        desc = rig.struct("ze_runtime_requirements_graph_desc_t", requirementsSrc=rig.graph())
        size = rig.buffer(bytes(8))
        ask = rig.npu.zeDeviceGetRuntimeRequirements
        assert ask(rig.device, desc, size, None) == SUCCESS
        text = rig.buffer(bytes(at("uint64_t", size)[0]))
        assert ask(rig.device, desc, size, text) == SUCCESS
        assert b"npu=4000" in ctypes.string_at(text)
        output = rig.struct("ze_validate_runtime_requirements_output_t")
        validate = rig.npu.zeDeviceValidateRuntimeRequirements
        assert validate(rig.device, text, output) == SUCCESS
        assert rig.read("ze_validate_runtime_requirements_output_t", output).result == 1


class TestExtensions:
    def test_every_table_is_found_by_both_ways(self, rig) -> None:
        npu = rig.npu
        names = ("graph", "profiling_data", "command_queue_npu", "context_npu")
        for name in names:
            text = rig.buffer(f"ZE_extension_{name}\0".encode())
            direct = npu.make("zeDriverGetExtensionFunctionAddress", rig.driver, text)
            place = rig.buffer(bytes(8))
            request = rig.struct(
                "ze_driver_extension_npu_ext_t", name=text, version=0, ppFunctionAddress=place
            )
            assert npu.pfnGetExtension(rig.driver, request) == SUCCESS
            assert at("uint64_t", place)[0] == direct
        unknown = rig.buffer(b"ZE_extension_of_another_driver\0")
        ask = npu.zeDriverGetExtensionFunctionAddress
        assert ask(rig.driver, unknown, rig.buffer(bytes(8))) == INVALID_ARGUMENT

    def test_a_context_takes_its_options_and_releases_memory(self, rig) -> None:
        desc = rig.struct("ze_context_properties_npu_ext_t", options=1)
        assert rig.npu.pfnSetProperties(rig.context, desc) == SUCCESS
        assert rig.npu.pfnReleaseMemory(rig.context) == SUCCESS

    def test_a_tensor_may_come_with_the_strides_of_its_layout(self, rig) -> None:
        """Strides count elements, of the innermost dimension first."""
        graph, _, y = rig.bound_graph()
        commands, at_x = rig.list(), rig.host()
        rig.view(at_x, X.size)[:] = X.ravel()
        kinds = [f"ze_graph_argument_value_{kind}_t" for kind in ("tensor", "strides")]
        change = rig.npu.pfnSetArgumentValue2
        other = rig.struct(kinds[1], userStrides=[1, 2, 0, 0, 0])
        tensor = rig.struct(kinds[0], pTensor=rig.host(), pNext=other)
        assert change(graph, 0, tensor) == INVALID_ARGUMENT
        tensor = rig.struct(kinds[0], pTensor=at_x)
        dense = rig.struct(kinds[1], userStrides=[1, DEPTH, 0, 0, 0], pNext=tensor)
        assert change(graph, 0, dense) == SUCCESS
        assert change(graph, 0, rig.struct("ze_fence_desc_t")) == INVALID_ARGUMENT
        assert rig.npu.pfnAppendGraphExecute(commands, graph, None, None, 0, None) == SUCCESS
        rig.run(commands)
        assert is_expected(y, X)

    def test_the_records_of_a_profile_have_the_form_of_the_header(self, rig) -> None:
        """The blob here has no layer map, so its pool is refused by name."""
        create = rig.npu.pfnProfilingPoolCreate
        assert create(rig.graph(), 1, rig.buffer(bytes(8))) == UNSUPPORTED_FEATURE


class TestSysman:
    def all_of(self, rig, name: str, *given: int) -> list[int]:
        """Return all handles of a function that is asked twice."""
        count = rig.buffer(bytes(4))
        ask = getattr(rig.npu, name)
        assert ask(*given, count, None) == SUCCESS
        room = rig.buffer(bytes(8 * at("uint32_t", count)[0]))
        assert ask(*given, count, room) == SUCCESS
        return [at("uint64_t", room)[index] for index in range(at("uint32_t", count)[0])]

    def test_engines_count_their_activity_and_memory_its_bytes(self, rig) -> None:
        npu = rig.npu
        assert npu.zesInit(0) == SUCCESS
        (driver,) = self.all_of(rig, "zesDriverGet")
        (device,) = self.all_of(rig, "zesDeviceGet", driver)
        properties = rig.struct("zes_device_properties_t")
        assert npu.zesDeviceGetProperties(device, properties) == SUCCESS
        core = rig.read("zes_device_properties_t", properties).core
        assert bytes(core.uuid.id).hex() == "80d1d11eb73811eab3de0242ac130004"
        found = rig.read("zes_device_properties_t", properties)
        assert ffi.string(found.brandName) == b"NPU"
        assert ffi.string(found.vendorName) == b"INTEL"
        assert b"npu-linux-driver" in ffi.string(found.driverVersion)
        engine = self.all_of(rig, "zesDeviceEnumEngineGroups", device)[0]
        stats = rig.struct("zes_engine_stats_t")
        assert npu.zesEngineGetActivity(engine, stats) == SUCCESS
        assert rig.read("zes_engine_stats_t", stats).timestamp > 0
        memory = self.all_of(rig, "zesDeviceEnumMemoryModules", device)[0]
        state = rig.struct("zes_mem_state_t")
        assert npu.zesMemoryGetState(memory, state) == SUCCESS
        found = rig.read("zes_mem_state_t", state)
        assert 0 < found.free <= found.size

    def test_metrics_of_an_inference_are_queried(self, direct, monkeypatch) -> None:
        monkeypatch.setenv("ZET_ENABLE_METRICS", "1")
        rig, npu = direct, direct.npu
        group = self.all_of(rig, "zetMetricGroupGet", rig.device)[0]
        place = rig.struct("zet_metric_group_properties_t")
        assert npu.zetMetricGroupGetProperties(group, place) == SUCCESS
        count = rig.read("zet_metric_group_properties_t", place).metricCount
        metrics = self.all_of(rig, "zetMetricGet", group)
        assert len(metrics) == count > 0
        one = rig.buffer(group.to_bytes(8, "little"))
        assert npu.zetContextActivateMetricGroups(rig.context, rig.device, 1, one) == SUCCESS
        desc = rig.struct("zet_metric_query_pool_desc_t", count=1)
        pool = npu.make("zetMetricQueryPoolCreate", rig.context, rig.device, group, desc)
        query = npu.make("zetMetricQueryCreate", pool, 0)
        graph, x, _ = rig.bound_graph()
        x[:] = X
        commands = rig.list()
        assert npu.zetCommandListAppendMetricQueryBegin(commands, query) == SUCCESS
        assert npu.pfnAppendGraphExecute(commands, graph, None, None, 0, None) == SUCCESS
        end = npu.zetCommandListAppendMetricQueryEnd
        assert end(commands, query, None, 0, None) == SUCCESS
        rig.run(commands)
        size = rig.buffer(bytes(8))
        assert npu.zetMetricQueryGetData(query, size, None) == SUCCESS
        raw = rig.buffer(bytes(at("uint64_t", size)[0]))
        assert npu.zetMetricQueryGetData(query, size, raw) == SUCCESS
        number = rig.buffer(bytes(4))
        calculate = npu.zetMetricGroupCalculateMetricValues
        given = (group, 0, at("uint64_t", size)[0], raw)
        assert calculate(*given, number, None) == SUCCESS
        values = ffi.new("zet_typed_value_t[]", at("uint32_t", number)[0])
        assert calculate(*given, number, int(ffi.cast("uintptr_t", values))) == SUCCESS
        assert any(value.value for value in values)
