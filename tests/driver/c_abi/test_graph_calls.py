"""Graphs and their lists, as the public driver's tests of the same names have them.

Source: linux-npu-driver v1.32.1, validation/umd-test (test_graph.cpp, test_graph_commands.cpp,
test_mutable_cmdlist.cpp, test_context.cpp).
"""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest
from tests.driver.c_abi.library import (
    INVALID_ARGUMENT,
    INVALID_NULL_HANDLE,
    INVALID_NULL_POINTER,
    INVALID_SIZE,
    SUCCESS,
    UNINITIALIZED,
    UNSUPPORTED_FEATURE,
    X_BYTES,
    Rig,
)

from driver_layer.c_abi.declarations import at, ffi
from driver_layer.testing.blobs import COLS, DEPTH, ROWS, dense_blob, is_expected

X = np.linspace(-1, 1, ROWS * DEPTH, dtype=np.float32).reshape(ROWS, DEPTH)
GRAPH_ARGUMENTS = 1 << 7


def append(rig: Rig, commands: int, graph: int) -> int:
    return rig.npu.pfnAppendGraphExecute(commands, graph, None, None, 0, None)


def wide(rig: Rig, address: int, shape: tuple[int, int]) -> np.ndarray:
    return rig.view(address, shape[0] * shape[1]).reshape(shape)


class TestCommandGraph:
    def test_append_graph_init_twice_and_execute_three_times(self, rig) -> None:
        graph, x, y = rig.bound_graph()
        commands = rig.list()
        for _ in range(2):
            appended = rig.npu.pfnAppendGraphInitialize(commands, graph, None, 0, None)
            assert appended == SUCCESS
        assert append(rig, commands, graph) == SUCCESS
        for sign in (1, -1, 2):
            x[:] = sign * X
            rig.run(commands)
            assert is_expected(y, sign * X)

    def test_run_graph_execute_in_two_separate_command_lists(self, rig) -> None:
        graph, x, y = rig.bound_graph()
        first, second = rig.list(), rig.list()
        assert append(rig, first, graph) == SUCCESS
        other = rig.host()
        assert rig.npu.pfnSetArgumentValue(graph, 1, other) == SUCCESS
        assert append(rig, second, graph) == SUCCESS
        x[:] = X
        rig.run(first, second)
        assert is_expected(y, X)
        assert is_expected(wide(rig, other, (ROWS, COLS)), X)

    def test_get_native_binary_and_release_after_initialize(self, rig) -> None:
        npu, size, place = rig.npu, rig.buffer(bytes(8)), rig.buffer(bytes(8))
        graph, x, y = rig.bound_graph()
        assert npu.pfnGetNativeBinary(graph, size, None) == SUCCESS
        length = at("uint64_t", size)[0]
        assert length == len(dense_blob())
        copy = rig.buffer(bytes(length))
        assert npu.pfnGetNativeBinary(graph, size, copy) == SUCCESS
        assert npu.pfnGetNativeBinary2(graph, size, place) == SUCCESS
        assert at("uint64_t", size)[0] == length
        at_blob = at("uint64_t", place)[0]
        for start in (copy, at_blob):
            assert bytes(rig.view(start, length // 4).data) == dense_blob()[: length // 4 * 4]
        assert npu.pfnGraphInitialize(graph) == SUCCESS
        commands = rig.list()
        assert append(rig, commands, graph) == SUCCESS
        x[:] = X
        rig.run(commands)
        assert is_expected(y, X)
        assert npu.pfnDestroy(graph) == SUCCESS

    def test_several_threads_initialize_and_record_one_graph(self, rig) -> None:
        for _ in range(10):
            self.record_at_once(rig)

    def record_at_once(self, rig: Rig) -> None:
        graph, x, y = rig.bound_graph()
        x[:] = X
        lists = [rig.list() for _ in range(4)]
        begin, codes = threading.Barrier(len(lists)), list[int]()

        def record(commands: int) -> None:
            begin.wait()
            codes.append(rig.npu.pfnGraphInitialize(graph))
            codes.append(append(rig, commands, graph))

        threads = [threading.Thread(target=record, args=(one,)) for one in lists]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert codes == [SUCCESS] * 8
        rig.run(*lists)
        assert is_expected(y, X)

    def test_the_input_of_a_graph_may_be_freed(self, rig) -> None:
        blob = dense_blob()
        desc = rig.desc_of(blob)
        graph = rig.npu.make("pfnCreate2", rig.context, rig.device, desc)
        at_input = rig.read("ze_graph_desc_2_t", desc).pInput
        wide(rig, at_input, (1, len(blob) // 4))[:] = np.nan
        assert rig.npu.pfnGraphInitialize(graph) == SUCCESS


class TestGraphApi:
    def test_create_graph_returns_correct_error(self, rig) -> None:
        create, place = rig.npu.pfnCreate2, rig.buffer(bytes(8))
        assert create(rig.context, rig.device, None, place) == INVALID_NULL_POINTER
        desc = rig.desc_of(dense_blob())
        inner = rig.read("ze_graph_desc_2_t", desc)
        inner.pInput, kept = 0, inner.pInput
        assert create(rig.context, rig.device, desc, place) == INVALID_NULL_POINTER
        inner.pInput, inner.inputSize = kept, 0
        assert create(rig.context, rig.device, desc, place) == INVALID_SIZE

    def test_append_graph_init_and_execute_returns_correct_error(self, rig) -> None:
        graph, commands = rig.graph(), rig.list()
        initialize = rig.npu.pfnAppendGraphInitialize
        assert initialize(commands, None, None, 0, None) == UNINITIALIZED
        assert initialize(commands, graph, None, 0, None) == SUCCESS
        assert append(rig, commands, graph) == UNINITIALIZED

    def test_each_null_of_a_graph_command_has_its_code(self, rig) -> None:
        graph, commands, null_event = rig.bound_graph()[0], rig.list(), rig.buffer(bytes(8))
        initialize, execute = rig.npu.pfnAppendGraphInitialize, rig.npu.pfnAppendGraphExecute
        for of_graph in (graph, None):
            assert initialize(None, of_graph, None, 0, None) == INVALID_NULL_HANDLE
            assert execute(None, of_graph, None, None, 0, None) == INVALID_NULL_HANDLE
        assert execute(commands, None, None, None, 0, None) == INVALID_NULL_HANDLE
        assert initialize(commands, graph, None, 1, None) == INVALID_SIZE
        assert execute(commands, graph, None, None, 1, None) == INVALID_SIZE
        assert initialize(commands, graph, None, 1, null_event) == INVALID_NULL_HANDLE
        assert execute(commands, graph, None, None, 1, null_event) == INVALID_NULL_HANDLE
        assert rig.npu.pfnGraphInitialize(None) == INVALID_NULL_HANDLE
        assert rig.npu.zeCommandListClose(commands) == SUCCESS
        assert initialize(commands, None, None, 0, None) == INVALID_ARGUMENT

    def test_set_argument_properties_returns_correct_error(self, rig) -> None:
        graph = rig.graph()
        for index in range(2):
            assert rig.npu.pfnSetArgumentValue(graph, index, None) == INVALID_NULL_POINTER
        assert rig.npu.pfnSetArgumentValue(graph, 2, rig.host()) == INVALID_ARGUMENT

    @pytest.mark.parametrize("version", ["", "_2", "_3"])
    def test_get_argument_properties(self, rig, version) -> None:
        graph = rig.graph()
        get = getattr(rig.npu, f"pfnGetArgumentProperties{version.strip('_')}")
        assert get(graph, 0, None) == INVALID_NULL_POINTER
        kind = f"ze_graph_argument_properties{version}_t"
        for index, (name, dims) in enumerate([(b"x", [ROWS, DEPTH]), (b"y", [ROWS, COLS])]):
            place = rig.struct(kind)
            assert get(graph, index, place) == SUCCESS
            found = rig.read(kind, place)
            assert ffi.string(found.name) == name
            assert found.type == index
            assert list(found.dims)[:2] == dims
            assert found.networkPrecision == found.devicePrecision == 1
            if version == "_3":
                assert found.dims_count == 2
                assert found.associated_tensor_names_count >= 1
        assert get(graph, 2, rig.struct(kind)) == INVALID_ARGUMENT

    @pytest.mark.parametrize("version", ["", "_2", "_3"])
    def test_get_properties(self, rig, version) -> None:
        place = rig.struct(f"ze_graph_properties{version}_t")
        get = getattr(rig.npu, f"pfnGetProperties{version.strip('_')}")
        assert get(rig.graph(), place) == SUCCESS
        assert rig.read("ze_graph_properties_t", place).numGraphArgs == 2
        if version:
            assert rig.read("ze_graph_properties_2_t", place).initStageRequired == 2

    def test_graph_evict_does_nothing(self, rig) -> None:
        assert rig.npu.pfnEvict(rig.graph()) == SUCCESS

    def test_get_device_graph_properties(self, rig) -> None:
        first = rig.struct("ze_device_graph_properties_t")
        second = rig.struct("ze_device_graph_properties_2_t")
        assert rig.npu.pfnDeviceGetGraphProperties(rig.device, first) == SUCCESS
        assert rig.npu.pfnDeviceGetGraphProperties2(rig.device, second) == SUCCESS
        one = rig.read("ze_device_graph_properties_t", first)
        two = rig.read("ze_device_graph_properties_2_t", second)
        assert one.graphExtensionVersion == two.graphExtensionVersion == 1 << 16 | 18
        assert one.graphFormatsSupported == two.graphFormatsSupported
        assert two.elfVersion.major >= 1

    def test_is_compiler_option_supported(self, rig) -> None:
        ask, of_compiler, of_driver = rig.npu.pfnCompilerIsOptionSupported, 1, 2
        for option in (b"PERF_COUNT", b"LOG_LEVEL"):
            text = rig.buffer(option + b"\0")
            assert ask(rig.device, of_compiler, text, None) == SUCCESS
            assert ask(rig.device, of_driver, text, None) == UNSUPPORTED_FEATURE
        unknown = rig.buffer(b"NON_EXISTING\0")
        assert ask(rig.device, of_compiler, unknown, None) == UNSUPPORTED_FEATURE
        size = rig.buffer(bytes(8))
        assert rig.npu.pfnCompilerGetSupportedOptions(rig.device, 1, size, None) == SUCCESS
        names = rig.buffer(bytes(at("uint64_t", size)[0]))
        assert rig.npu.pfnCompilerGetSupportedOptions(rig.device, 1, size, names) == SUCCESS
        assert b"PERF_COUNT" in ctypes.string_at(names).split()

    def test_query_context_memory(self, rig) -> None:
        place = rig.struct("ze_graph_memory_query_t")
        found = rig.read("ze_graph_memory_query_t", place)
        assert rig.npu.pfnQueryContextMemory(rig.context, 1, place) == SUCCESS
        before = found.allocated
        rig.host(1 << 20)
        assert rig.npu.pfnQueryContextMemory(rig.context, 1, place) == SUCCESS
        assert found.allocated - before == 1 << 20
        assert found.total > found.allocated


class TestMutableLists:
    def recorded(self, rig) -> tuple[int, int, int]:
        """Return a mutable list, its graph and the number of its command."""
        graph, x, _ = rig.bound_graph()
        x[:] = X
        commands = rig.list(mutable=True)
        flags = rig.struct("ze_mutable_command_id_exp_desc_t", flags=GRAPH_ARGUMENTS)
        number = rig.npu.make("zeCommandListGetNextCommandIdExp", commands, flags)
        assert append(rig, commands, graph) == SUCCESS
        return commands, graph, number

    def change(self, rig, commands: int, *changes: tuple[int, int, int]) -> int:
        chain = 0
        for number, index, pointer in changes:
            chain = rig.struct(
                "ze_mutable_graph_argument_exp_desc_t",
                pNext=chain,
                commandId=number,
                argIndex=index,
                pArgValue=pointer,
            )
        desc = rig.struct("ze_mutable_commands_exp_desc_t", pNext=chain)
        return rig.npu.zeCommandListUpdateMutableCommandsExp(commands, desc)

    def test_update_graph_inputs_and_outputs_twice(self, rig) -> None:
        commands, _, number = self.recorded(rig)
        rig.run(commands)
        for sign in (-1, 3):
            x, y = rig.host(), rig.host()
            wide(rig, x, (ROWS, DEPTH))[:] = sign * X
            assert self.change(rig, commands, (number, 0, x), (number, 1, y)) == SUCCESS
            rig.run(commands)
            assert is_expected(wide(rig, y, (ROWS, COLS)), sign * X)

    def test_update_graph_first_input(self, rig) -> None:
        graph, x, y = rig.bound_graph()
        commands = rig.list(mutable=True)
        flags = rig.struct("ze_mutable_command_id_exp_desc_t", flags=GRAPH_ARGUMENTS)
        number = rig.npu.make("zeCommandListGetNextCommandIdExp", commands, flags)
        assert append(rig, commands, graph) == SUCCESS
        x[:], other = X, rig.host()
        wide(rig, other, (ROWS, DEPTH))[:] = 5 * X
        rig.run(commands)
        assert self.change(rig, commands, (number, 0, other)) == SUCCESS
        rig.run(commands)
        assert is_expected(y, 5 * X)

    def test_update_two_graphs_in_single_list(self, rig) -> None:
        commands, _, first = self.recorded(rig)
        graph, x, _ = rig.bound_graph()
        x[:] = -X
        flags = rig.struct("ze_mutable_command_id_exp_desc_t", flags=GRAPH_ARGUMENTS)
        second = rig.npu.make("zeCommandListGetNextCommandIdExp", commands, flags)
        assert append(rig, commands, graph) == SUCCESS
        assert rig.npu.zeCommandListClose(commands) == SUCCESS
        y = [rig.host(), rig.host()]
        assert self.change(rig, commands, (first, 1, y[0]), (second, 1, y[1])) == SUCCESS
        rig.run(commands)
        assert is_expected(wide(rig, y[0], (ROWS, COLS)), X)
        assert is_expected(wide(rig, y[1], (ROWS, COLS)), -X)

    def test_update_of_an_invalid_command_or_of_nothing(self, rig) -> None:
        commands, _, number = self.recorded(rig)
        assert rig.npu.zeCommandListClose(commands) == SUCCESS
        assert self.change(rig, commands, (10000, 0, rig.host())) == INVALID_ARGUMENT
        assert self.change(rig, commands, (number, 7, rig.host())) == INVALID_ARGUMENT
        assert self.change(rig, commands) == INVALID_ARGUMENT

    def test_get_next_command_id_of_closed_and_of_other_lists(self, rig) -> None:
        flags = rig.struct("ze_mutable_command_id_exp_desc_t", flags=GRAPH_ARGUMENTS)
        ask = rig.npu.zeCommandListGetNextCommandIdExp
        place, closed = rig.buffer(bytes(8)), rig.list(mutable=True)
        assert ask(rig.list(), flags, place) == INVALID_ARGUMENT
        assert rig.npu.zeCommandListClose(closed) == SUCCESS
        assert ask(closed, flags, place) == INVALID_ARGUMENT

    def test_a_list_may_be_closed_again(self, rig) -> None:
        """OpenVINO's plugin closes its list before each submission."""
        commands, _, _ = self.recorded(rig)
        rig.run(commands)
        rig.run(commands)


def test_memory_cannot_be_used_in_a_different_context(rig) -> None:
    other = rig.npu.make("zeContextCreate", rig.driver, rig.struct("ze_context_desc_t"))
    desc = rig.struct("ze_host_mem_alloc_desc_t")
    foreign = rig.npu.make("zeMemAllocHost", other, desc, X_BYTES, 0)
    graph = rig.bound_graph()[0]
    assert rig.npu.pfnSetArgumentValue(graph, 0, foreign) == SUCCESS
    assert append(rig, rig.list(), graph) == INVALID_ARGUMENT
    assert rig.npu.zeMemFree(rig.context, foreign) == INVALID_ARGUMENT
    assert rig.npu.zeContextDestroy(other) == SUCCESS
