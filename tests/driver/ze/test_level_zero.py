"""Level Zero: the behaviour of the public driver, with its result codes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from driver_layer import ze
from driver_layer.abi.elf import Relocation, SectionFlag
from driver_layer.abi.layout import field_offset
from driver_layer.abi.tasks import DMA_DESCRIPTOR
from driver_layer.testing.blobs import COLS, DEPTH, ROWS, dense_blob, dense_builder, expected
from driver_layer.ze import ze_result_t as r

X_BYTES, Y_BYTES = ROWS * DEPTH * 4, ROWS * COLS * 4


@dataclass
class Rig:
    """Everything between a blob and an answer."""

    device: ze.ze_device_handle_t
    context: ze.ze_context_handle_t
    table: ze.ze_graph_dditable_ext_t
    queue: ze.ze_command_queue_handle_t

    def graph(self, blob: bytes) -> ze.ze_graph_handle_t:
        desc = ze.ze_graph_desc_2_t(ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE, blob)
        return self.table.pfnCreate2(self.context, self.device, desc)

    def arguments(self, graph: ze.ze_graph_handle_t, x: np.ndarray) -> ze.Memory:
        """Set both arguments to new memory; give that of y."""
        at_x = ze.zeMemAllocHost(self.context, X_BYTES)
        at_x.data[:] = x.view(np.uint8).reshape(-1)
        at_y = ze.zeMemAllocShared(self.context, Y_BYTES, 0, self.device)
        self.table.pfnSetArgumentValue(graph, 0, at_x)
        self.table.pfnSetArgumentValue(graph, 1, at_y)
        return at_y

    def recorded(self, graph: ze.ze_graph_handle_t) -> ze.ze_command_list_handle_t:
        commands = ze.zeCommandListCreate(self.context, self.device)
        self.table.pfnAppendGraphExecute(commands, graph)
        ze.zeCommandListClose(commands)
        return commands

    def execute(self, *lists: ze.ze_command_list_handle_t) -> None:
        ze.zeCommandQueueExecuteCommandLists(self.queue, lists)
        ze.zeCommandQueueSynchronize(self.queue)


@pytest.fixture
def rig() -> Rig:
    ze.zeInit(0)
    (driver,) = ze.zeDriverGet()
    (device,) = ze.zeDeviceGet(driver)
    context = ze.zeContextCreate(driver)
    table = ze.zeDriverGetExtensionFunctionAddress(driver, "ZE_extension_graph")
    return Rig(device, context, table, ze.zeCommandQueueCreate(context, device))


def y_of(memory: ze.Memory) -> np.ndarray:
    return memory.data.view(np.float32).reshape(ROWS, COLS)


def fails(code: r, call: Callable[[], object]) -> ze.ZeError:
    with pytest.raises(ze.ZeError) as caught:
        call()
    assert caught.value.code is code, caught.value
    return caught.value


class TestDriverAndDevice:
    def test_the_driver_offers_the_graph_extension(self, rig) -> None:
        driver = rig.device.driver
        names = [e.name for e in ze.zeDriverGetExtensionProperties(driver)]
        assert names[0] == "ZE_extension_graph"
        for name in names:
            assert ze.zeDriverGetExtensionFunctionAddress(driver, name) is rig.table
        get = ze.zeDriverGetExtensionFunctionAddress
        fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: get(driver, "ZE_extension_nothing"))
        assert ze.zeDriverGetApiVersion(driver) >> 16 == 1

    def test_the_device_is_an_npu(self, rig) -> None:
        properties = ze.zeDeviceGetProperties(rig.device)
        assert properties.type is ze.ze_device_type_t.ZE_DEVICE_TYPE_VPU
        assert properties.name == "Intel(R) AI Boost"
        assert (properties.deviceId, properties.numSlices) == (0x643E, 6)
        assert properties.timerResolution == 19_200_000
        (group,) = ze.zeDeviceGetCommandQueueGroupProperties(rig.device)
        assert (group.flags, group.numQueues) == (3, 1)
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

    def test_an_unknown_platform_is_an_error_that_lists_the_known_ones(self, monkeypatch) -> None:
        monkeypatch.setenv("ZE_INTEL_NPU_PLATFORM_OVERRIDE", "CHERRYLAKE")
        error = fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: ze.zeInit(0))
        assert "LUNARLAKE" in str(error)

    def test_handles_are_checked(self, rig) -> None:
        fails(r.ZE_RESULT_ERROR_INVALID_NULL_HANDLE, lambda: ze.zeDeviceGet(None))
        fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: ze.zeDeviceGet(rig.device))
        ze.zeContextDestroy(rig.context)
        fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: ze.zeMemAllocHost(rig.context, 64))

    def test_graph_properties_tell_the_versions(self, rig) -> None:
        found = rig.table.pfnDeviceGetGraphProperties2(rig.device)
        assert found.graphExtensionVersion == 1 << 16 | 18
        assert found.graphFormatsSupported == ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE
        assert (found.elfVersion.major, found.runtimeVersion.major) == (1, 11)


class TestMemory:
    def test_host_and_shared_memory_have_a_host_view_and_device_memory_has_none(self, rig) -> None:
        assert not ze.zeMemAllocHost(rig.context, 64).data.any()
        assert not ze.zeMemAllocShared(rig.context, 64, 0, rig.device).data.any()
        hidden = ze.zeMemAllocDevice(rig.context, 64, 0, rig.device)
        fails(r.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, lambda: hidden.data)

    def test_sizes_and_alignments_are_checked(self, rig) -> None:
        allocate = ze.zeMemAllocHost
        fails(r.ZE_RESULT_ERROR_UNSUPPORTED_SIZE, lambda: allocate(rig.context, 0))
        fails(r.ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT, lambda: allocate(rig.context, 64, 3))
        assert allocate(rig.context, 64, 4096).address % 4096 == 0
        fails(r.ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY, lambda: allocate(rig.context, 1 << 50))

    def test_a_pointer_leads_back_to_its_allocation(self, rig) -> None:
        memory = ze.zeMemAllocHost(rig.context, 100)
        assert ze.zeMemGetAddressRange(rig.context, memory.address + 99) == (memory.address, 100)
        kind = ze.zeMemGetAllocProperties(rig.context, memory.address + 1).type
        assert kind is ze.ze_memory_type_t.ZE_MEMORY_TYPE_HOST
        kind = ze.zeMemGetAllocProperties(rig.context, 0x1234).type
        assert kind is ze.ze_memory_type_t.ZE_MEMORY_TYPE_UNKNOWN
        beyond = memory.address + 100
        get = ze.zeMemGetAddressRange
        fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: get(rig.context, beyond))

    def test_memory_is_freed_once(self, rig) -> None:
        before = rig.table.pfnQueryContextMemory(rig.context).allocated
        memory = ze.zeMemAllocHost(rig.context, 4096)
        assert rig.table.pfnQueryContextMemory(rig.context).allocated == before + 4096
        ze.zeMemFree(rig.context, memory)
        assert rig.table.pfnQueryContextMemory(rig.context).allocated == before
        free = ze.zeMemFree
        fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: free(rig.context, memory))

    def test_memory_of_one_context_cannot_be_used_in_another(self, rig) -> None:
        other = ze.zeContextCreate(rig.device.driver)
        memory = ze.zeMemAllocHost(other, 4096)
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        mine = ze.zeMemAllocHost(rig.context, 64)
        copy = ze.zeCommandListAppendMemoryCopy
        fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: copy(commands, mine, memory, 64))


class TestCommandLists:
    def test_copy_and_fill_happen_in_order_when_the_list_is_executed(self, rig) -> None:
        source = ze.zeMemAllocHost(rig.context, 8)
        device = ze.zeMemAllocDevice(rig.context, 8, 0, rig.device)
        target = ze.zeMemAllocShared(rig.context, 8, 0, rig.device)
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        ze.zeCommandListAppendMemoryFill(commands, source, b"\1\2", 8)
        ze.zeCommandListAppendMemoryCopy(commands, device, source, 8)
        ze.zeCommandListAppendBarrier(commands)
        ze.zeCommandListAppendMemoryCopy(commands, target, device.address + 2, 6)
        ze.zeCommandListClose(commands)
        assert not target.data.any()
        rig.execute(commands)
        assert target.data.tolist() == [1, 2, 1, 2, 1, 2, 0, 0]

    def test_a_list_must_be_closed_to_run_and_open_to_grow(self, rig) -> None:
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        fails(r.ZE_RESULT_ERROR_UNINITIALIZED, lambda: rig.execute(commands))
        ze.zeCommandListClose(commands)
        rig.execute(commands)
        append = ze.zeCommandListAppendBarrier
        fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: append(commands))
        ze.zeCommandListReset(commands)
        append(commands)
        ze.zeCommandListDestroy(commands)
        fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: append(commands))

    def test_no_list_at_all_is_an_invalid_size(self, rig) -> None:
        fails(r.ZE_RESULT_ERROR_INVALID_SIZE, rig.execute)

    @pytest.mark.parametrize(("pattern", "size"), [(b"", 8), (b"abc", 9), (b"ab", 7)])
    def test_fill_patterns_are_checked(self, rig, pattern, size) -> None:
        memory = ze.zeMemAllocHost(rig.context, 16)
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        fill = ze.zeCommandListAppendMemoryFill
        fails(r.ZE_RESULT_ERROR_INVALID_SIZE, lambda: fill(commands, memory, pattern, size))


class TestFences:
    def test_a_fence_is_signaled_by_its_submission(self, rig) -> None:
        gate = threading.Event()
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        commands.append(lambda: gate.wait(30) and None)
        ze.zeCommandListClose(commands)
        fence = ze.zeFenceCreate(rig.queue)
        assert ze.zeFenceQueryStatus(fence) is r.ZE_RESULT_NOT_READY
        ze.zeCommandQueueExecuteCommandLists(rig.queue, [commands], fence)
        assert ze.zeFenceQueryStatus(fence) is r.ZE_RESULT_NOT_READY
        wait = ze.zeFenceHostSynchronize
        fails(r.ZE_RESULT_NOT_READY, lambda: wait(fence, 1000))
        fails(r.ZE_RESULT_NOT_READY, lambda: ze.zeCommandQueueSynchronize(rig.queue, 1000))
        gate.set()
        wait(fence)
        assert ze.zeFenceQueryStatus(fence) is r.ZE_RESULT_SUCCESS
        ze.zeFenceReset(fence)
        assert ze.zeFenceQueryStatus(fence) is r.ZE_RESULT_NOT_READY

    def test_a_fence_may_begin_signaled(self, rig) -> None:
        fence = ze.zeFenceCreate(rig.queue, ze.ze_fence_flags_t.ZE_FENCE_FLAG_SIGNALED)
        assert ze.zeFenceQueryStatus(fence) is r.ZE_RESULT_SUCCESS

    def test_a_fence_belongs_to_its_queue(self, rig) -> None:
        other = ze.zeCommandQueueCreate(rig.context, rig.device)
        commands = ze.zeCommandListCreate(rig.context, rig.device)
        ze.zeCommandListClose(commands)
        execute = ze.zeCommandQueueExecuteCommandLists
        fails(
            r.ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT,
            lambda: execute(rig.queue, [commands], ze.zeFenceCreate(other)),
        )


class TestGraphs:
    def test_a_graph_is_loaded_run_and_run_again(self, rig, x) -> None:
        graph = rig.graph(dense_blob())
        y = rig.arguments(graph, x)
        commands = rig.recorded(graph)
        for _ in range(3):
            y.data[:] = 0
            rig.execute(commands)
            assert np.array_equal(y_of(y), expected(x))

    def test_arguments_are_captured_when_the_execution_is_recorded(self, rig, x) -> None:
        graph = rig.graph(dense_blob())
        first = rig.arguments(graph, x)
        one = rig.recorded(graph)
        second = rig.arguments(graph, -x)
        two = rig.recorded(graph)
        rig.execute(one, two)
        assert np.array_equal(y_of(first), expected(x))
        assert np.array_equal(y_of(second), expected(-x))

    def test_resetting_a_list_gives_its_inference_to_the_next_recording(self, rig, x) -> None:
        graph = rig.graph(dense_blob())
        rig.arguments(graph, x)
        commands = rig.recorded(graph)
        memory = rig.table.pfnQueryContextMemory(rig.context).allocated
        ze.zeCommandListReset(commands)
        rig.recorded(graph)
        assert rig.table.pfnQueryContextMemory(rig.context).allocated == memory
        rig.recorded(graph)
        assert rig.table.pfnQueryContextMemory(rig.context).allocated > memory

    def test_a_destroyed_graph_leaves_only_the_callers_memory(self, rig, x) -> None:
        graph = rig.graph(dense_blob())
        rig.arguments(graph, x)
        rig.table.pfnGraphInitialize(graph)
        commands = rig.recorded(graph)
        rig.execute(commands)
        ze.zeCommandListDestroy(commands)
        rig.table.pfnDestroy(graph)
        allocated = rig.table.pfnQueryContextMemory(rig.context).allocated
        assert allocated == X_BYTES + Y_BYTES
        properties = rig.table.pfnGetProperties2
        fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: properties(graph))

    def test_arguments_describe_themselves(self, rig) -> None:
        graph = rig.graph(dense_blob())
        assert rig.table.pfnGetProperties2(graph).numGraphArgs == 2
        x, y = (rig.table.pfnGetArgumentProperties3(graph, i) for i in range(2))
        assert (x.name, x.dims, x.dims_count) == ("x", (ROWS, DEPTH, 1, 1, 1), 2)
        assert y.type is ze.ze_graph_argument_type_t.ZE_GRAPH_ARGUMENT_TYPE_OUTPUT
        assert y.devicePrecision == 1
        assert rig.table.pfnGraphGetArgumentMetadata(graph, 1).shape == (ROWS, COLS)
        get = rig.table.pfnGetArgumentProperties3
        fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: get(graph, 2))

    def test_the_native_binary_is_the_blob(self, rig) -> None:
        blob = dense_blob()
        graph = rig.graph(blob)
        assert rig.table.pfnGetNativeBinary(graph) == blob
        view = rig.table.pfnGetNativeBinary2(graph)
        assert view == blob
        assert view.readonly

    def test_a_missing_argument_is_uninitialized(self, rig, x) -> None:
        graph = rig.graph(dense_blob())
        error = fails(r.ZE_RESULT_ERROR_UNINITIALIZED, lambda: rig.recorded(graph))
        assert "'x'" in str(error)
        assert "'x'" in rig.table.pfnBuildLogGetString()

    def test_an_argument_must_be_large_enough_and_known(self, rig) -> None:
        graph = rig.graph(dense_blob())
        small = ze.zeMemAllocHost(rig.context, X_BYTES - 1)
        rig.table.pfnSetArgumentValue(graph, 1, ze.zeMemAllocHost(rig.context, Y_BYTES))
        for pointer in (small, 0x1234, small.address + 1):
            rig.table.pfnSetArgumentValue(graph, 0, pointer)
            fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: rig.recorded(graph))
        set_value = rig.table.pfnSetArgumentValue
        fails(r.ZE_RESULT_ERROR_INVALID_NULL_POINTER, lambda: set_value(graph, 0, None))
        fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: set_value(graph, 9, small))

    def test_a_model_in_place_of_a_blob_is_unsupported(self, rig) -> None:
        desc = ze.ze_graph_desc_2_t(ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NGRAPH_LITE, b"<net/>")
        create = rig.table.pfnCreate2
        fails(
            r.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE,
            lambda: create(rig.context, rig.device, desc),
        )
        assert "no compiler" in rig.table.pfnBuildLogGetString()

    def test_a_bad_blob_is_an_invalid_argument_and_says_why(self, rig) -> None:
        error = fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: rig.graph(b"no blob"))
        assert "ELF header" in str(error.__cause__)

    def test_a_blob_for_another_platform_is_an_invalid_native_binary(self, rig) -> None:
        fails(r.ZE_RESULT_ERROR_INVALID_NATIVE_BINARY, lambda: rig.graph(dense_blob("3720")))

    def test_a_user_relocation_that_cannot_be_applied_is_an_error_of_the_call(self, rig, x) -> None:
        builder = dense_builder()
        names = [section.name for section in builder.sections]
        transfers = 7 + names.index("task.dma.0.0")
        at = field_offset(DMA_DESCRIPTOR, "src_width")  # 128: a multicast index far too large
        kind = Relocation.R_VPU_DISP28_MULTICAST_OFFSET
        builder.relocate(transfers, at, kind, 1, user=SectionFlag.VPU_SHF_USERINPUT)
        graph = rig.graph(builder.build())
        rig.arguments(graph, x)
        error = fails(r.ZE_RESULT_ERROR_UNKNOWN, lambda: rig.recorded(graph))
        assert "multicast index" in str(error.__cause__)

    def test_a_device_fault_is_a_lost_device_and_the_queue_goes_on(self, rig, x) -> None:
        builder = dense_builder()
        names = [section.name for section in builder.sections]
        barriers = builder.sections[names.index("program.barrier")]
        barriers.data = bytes(4) + (9).to_bytes(2, "little") + barriers.data[6:]
        broken, good = rig.graph(builder.build()), rig.graph(dense_blob())
        rig.arguments(broken, x)
        commands = rig.recorded(broken)
        error = fails(r.ZE_RESULT_ERROR_DEVICE_LOST, lambda: rig.execute(commands))
        assert "barrier" in str(error.__cause__)
        y = rig.arguments(good, x)
        rig.execute(rig.recorded(good))
        assert np.array_equal(y_of(y), expected(x))

    def test_a_synchronous_queue_has_the_result_at_once(self, rig, x) -> None:
        mode = ze.ze_command_queue_mode_t.ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS
        desc = ze.ze_command_queue_desc_t(mode=mode)
        queue = ze.zeCommandQueueCreate(rig.context, rig.device, desc)
        graph = rig.graph(dense_blob())
        y = rig.arguments(graph, x)
        ze.zeCommandQueueExecuteCommandLists(queue, [rig.recorded(graph)])
        assert np.array_equal(y_of(y), expected(x))
