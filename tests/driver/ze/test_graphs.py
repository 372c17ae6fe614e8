"""The graph extension: the public driver's behaviour, with its result codes."""

from __future__ import annotations

from driver_layer import ze
from driver_layer.abi.elf import Relocation, SectionFlag
from driver_layer.abi.layout import field_offset
from driver_layer.abi.tasks import DMA_DESCRIPTOR
from driver_layer.testing.blobs import COLS, DEPTH, ROWS, dense_blob, dense_builder, is_expected
from driver_layer.ze import ze_result_t as r

X_BYTES, Y_BYTES = ROWS * DEPTH * 4, ROWS * COLS * 4


class TestGraphs:
    def test_a_graph_is_loaded_and_run_repeatedly(self, rig, x) -> None:
        graph = rig.graph(dense_blob())
        y = rig.arguments(graph, x)
        commands = rig.recorded(graph)
        for _ in range(3):
            y.data[:] = 0
            rig.execute(commands)
            assert is_expected(rig.values(y), x)

    def test_arguments_are_captured_when_the_execution_is_recorded(self, rig, x) -> None:
        graph = rig.graph(dense_blob())
        first = rig.arguments(graph, x)
        one = rig.recorded(graph)
        second = rig.arguments(graph, -x)
        two = rig.recorded(graph)
        rig.execute(one, two)
        assert is_expected(rig.values(first), x)
        assert is_expected(rig.values(second), -x)

    def test_resetting_a_list_frees_its_inference_for_the_next_recording(self, rig, x) -> None:
        graph = rig.graph(dense_blob())
        rig.arguments(graph, x)
        commands = rig.recorded(graph)
        memory = rig.table.pfnQueryContextMemory(rig.context).allocated
        ze.zeCommandListReset(commands)
        kept = [rig.recorded(graph)]
        assert rig.table.pfnQueryContextMemory(rig.context).allocated == memory
        kept.append(rig.recorded(graph))
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
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: properties(graph))

    def test_arguments_have_names_shapes_and_precisions(self, rig) -> None:
        graph = rig.graph(dense_blob())
        assert rig.table.pfnGetProperties2(graph).numGraphArgs == 2
        x, y = (rig.table.pfnGetArgumentProperties3(graph, i) for i in range(2))
        assert (x.name, x.dims, x.dims_count) == ("x", (ROWS, DEPTH, 1, 1, 1), 2)
        assert y.type is ze.ze_graph_argument_type_t.ZE_GRAPH_ARGUMENT_TYPE_OUTPUT
        assert y.devicePrecision == 1
        assert rig.table.pfnGraphGetArgumentMetadata(graph, 1).shape == (ROWS, COLS)
        get = rig.table.pfnGetArgumentProperties3
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: get(graph, 2))

    def test_the_native_binary_is_the_blob(self, rig) -> None:
        blob = dense_blob()
        graph = rig.graph(blob)
        assert rig.table.pfnGetNativeBinary(graph) == blob
        view = rig.table.pfnGetNativeBinary2(graph)
        assert view == blob
        assert view.readonly

    def test_a_missing_argument_is_uninitialized(self, rig, x) -> None:
        graph = rig.graph(dense_blob())
        error = rig.fails(r.ZE_RESULT_ERROR_UNINITIALIZED, lambda: rig.recorded(graph))
        assert "'x'" in str(error)
        assert "'x'" in rig.table.pfnBuildLogGetString()

    def test_an_argument_must_be_large_enough_and_of_the_context(self, rig) -> None:
        graph = rig.graph(dense_blob())
        small = ze.zeMemAllocHost(rig.context, X_BYTES - 1)
        rig.table.pfnSetArgumentValue(graph, 1, ze.zeMemAllocHost(rig.context, Y_BYTES))
        for pointer in (small, 0x1234, small.address + 1):
            rig.table.pfnSetArgumentValue(graph, 0, pointer)
            rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: rig.recorded(graph))
        set_value = rig.table.pfnSetArgumentValue
        rig.fails(r.ZE_RESULT_ERROR_INVALID_NULL_POINTER, lambda: set_value(graph, 0, None))
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: set_value(graph, 9, small))

    def test_a_malformed_blob_is_an_invalid_argument_with_the_reason(self, rig) -> None:
        error = rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: rig.graph(b"no blob"))
        assert "ELF header" in str(error.__cause__)

    def test_a_blob_for_another_platform_is_an_invalid_native_binary(self, rig) -> None:
        rig.fails(r.ZE_RESULT_ERROR_INVALID_NATIVE_BINARY, lambda: rig.graph(dense_blob("3720")))

    def test_a_user_relocation_that_cannot_be_applied_is_an_error_of_the_call(self, rig, x) -> None:
        builder = dense_builder()
        names = [section.name for section in builder.sections]
        transfers = 7 + names.index("task.dma.0.0")
        at = field_offset(DMA_DESCRIPTOR, "src_width")  # 128: a multicast index far too large
        kind = Relocation.R_VPU_DISP28_MULTICAST_OFFSET
        builder.relocate(transfers, at, kind, 1, user=SectionFlag.VPU_SHF_USERINPUT)
        graph = rig.graph(builder.build())
        rig.arguments(graph, x)
        error = rig.fails(r.ZE_RESULT_ERROR_UNKNOWN, lambda: rig.recorded(graph))
        assert "multicast index" in str(error.__cause__)

    def test_a_device_fault_is_device_lost_and_the_queue_stays_usable(self, rig, x) -> None:
        builder = dense_builder()
        names = [section.name for section in builder.sections]
        barriers = builder.sections[names.index("program.barrier")]
        barriers.data = bytes(4) + (9).to_bytes(2, "little") + barriers.data[6:]
        broken, good = rig.graph(builder.build()), rig.graph(dense_blob())
        rig.arguments(broken, x)
        commands = rig.recorded(broken)
        error = rig.fails(r.ZE_RESULT_ERROR_DEVICE_LOST, lambda: rig.execute(commands))
        assert "barrier" in str(error.__cause__)
        y = rig.arguments(good, x)
        rig.execute(rig.recorded(good))
        assert is_expected(rig.values(y), x)

    def test_a_synchronous_queue_returns_after_execution(self, rig, x) -> None:
        mode = ze.ze_command_queue_mode_t.ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS
        desc = ze.ze_command_queue_desc_t(mode=mode)
        queue = ze.zeCommandQueueCreate(rig.context, rig.device, desc)
        graph = rig.graph(dense_blob())
        y = rig.arguments(graph, x)
        ze.zeCommandQueueExecuteCommandLists(queue, [rig.recorded(graph)])
        assert is_expected(rig.values(y), x)
