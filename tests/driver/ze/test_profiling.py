"""The profiling extension: times of an inference by layers and tasks."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from driver_layer import ze
from driver_layer.abi.elf import SectionFlag
from driver_layer.abi.layer_map import SECTION_NAME, TASK_TIME, Layer, encode_layer_map
from driver_layer.errors import DeviceFault
from driver_layer.npu.timeline import Engine, predict
from driver_layer.testing.blobs import DEPTH, ROWS, dense_blob, dense_builder, is_expected
from driver_layer.ze import ze_result_t as r

LAYERS, TASKS, RAW = ze.ze_graph_profiling_type_t
STATUS = ze.ze_layer_status_t
LOAD, PRODUCT, RELU, UNUSED = range(4)
OWNERS = {
    ("dma_ddr", 0): [LOAD, PRODUCT],
    ("dpu", 0): [PRODUCT],
    ("shave", 0): [RELU],
    ("dma_cmx", 0): [RELU],
}
ENGINES = {
    Engine.DPU: ze.ze_task_execute_type_t.ZE_TASK_EXECUTE_DPU,
    Engine.SHAVE: ze.ze_task_execute_type_t.ZE_TASK_EXECUTE_SW,
    Engine.DMA: ze.ze_task_execute_type_t.ZE_TASK_EXECUTE_DMA,
}


def named_blob(owners=OWNERS) -> bytes:
    """Return the dense layer's blob with a layer map, in which the last layer has no tasks."""
    builder = dense_builder()
    layers = [Layer("x", 0, "Copy"), Layer("product", 0, "MatMul"), Layer("relu", 0, "Relu")]
    layers.append(Layer("nothing", 0))
    builder.add(SECTION_NAME, encode_layer_map(layers, owners), SectionFlag(0))
    return builder.build()


@pytest.fixture
def table(rig) -> ze.ze_graph_profiling_dditable_ext_t:
    return ze.zeDriverGetExtensionFunctionAddress(rig.device.driver, ze.PROFILING_EXTENSION)


@pytest.fixture
def graph(rig) -> ze.ze_graph_handle_t:
    return rig.graph(named_blob())


@pytest.fixture
def query(table, graph) -> ze.ze_graph_profiling_query_handle_t:
    return table.pfnProfilingQueryCreate(table.pfnProfilingPoolCreate(graph, 2), 0)


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((ROWS, DEPTH)).astype(np.float32)


def recorded(rig, graph, query) -> ze.ze_command_list_handle_t:
    commands = ze.zeCommandListCreate(rig.context, rig.device)
    rig.table.pfnAppendGraphExecute(commands, graph, query)
    ze.zeCommandListClose(commands)
    return commands


@pytest.fixture
def run_once(rig, graph, query, x) -> ze.Memory:
    """Run the graph with the query; return the memory of its output."""
    y = rig.arguments(graph, x)
    rig.execute(recorded(rig, graph, query))
    return y


class TestData:
    def test_the_device_reports_the_extensions_version(self, rig, table) -> None:
        found = table.pfnDeviceGetProfilingDataProperties(rig.device)
        assert found.extensionVersion == ze.ZE_MAKE_VERSION(1, 0)

    def test_profiling_does_not_change_the_output(self, rig, run_once, x) -> None:
        assert is_expected(rig.values(run_once), x)

    @pytest.mark.usefixtures("run_once")
    def test_tasks_are_those_of_the_timeline(self, table, query) -> None:
        found = table.pfnProfilingQueryGetData(query, TASKS)
        expected = sorted(predict(named_blob()), key=lambda task: task.begin_ns)
        assert [task.start_time_ns for task in found] == [round(e.begin_ns) for e in expected]
        ends = [task.start_time_ns + task.duration_ns for task in found]
        assert ends == [round(task.end_ns) for task in expected]
        kinds = [(task.exec_type, task.task_id) for task in found]
        assert kinds == [(ENGINES[task.engine], task.index) for task in expected]
        assert {task.name for task in found} == {"x", "product", "relu"}

    @pytest.mark.usefixtures("run_once")
    def test_layers_have_the_sums_of_their_tasks(self, table, query) -> None:
        layers = table.pfnProfilingQueryGetData(query, LAYERS)
        tasks = table.pfnProfilingQueryGetData(query, TASKS)
        assert [layer.name for layer in layers][-2:] == ["relu", "nothing"]
        for layer in layers:
            own = [task for task in tasks if task.parent_layer_id == layer.layer_id]
            busy = Counter[ze.ze_task_execute_type_t]()
            for task in own:
                busy[task.exec_type] += task.duration_ns
                assert (task.name, task.layer_type) == (layer.name, layer.layer_type)
            found = (layer.dpu_ns, layer.sw_ns, layer.dma_ns)
            assert found == tuple(busy[ENGINES[engine]] for engine in ENGINES)
            if own:
                assert layer.status is STATUS.ZE_LAYER_STATUS_EXECUTED
                assert layer.start_time_ns == min(task.start_time_ns for task in own)
                end = max(task.start_time_ns + task.duration_ns for task in own)
                assert layer.start_time_ns + layer.duration_ns == end

    @pytest.mark.usefixtures("run_once")
    def test_a_layer_without_tasks_was_optimized_out(self, table, query) -> None:
        last = table.pfnProfilingQueryGetData(query, LAYERS)[-1]
        assert (last.name, last.status) == ("nothing", STATUS.ZE_LAYER_STATUS_OPTIMIZED_OUT)
        assert (last.start_time_ns, last.duration_ns, last.dma_ns) == (0, 0, 0)

    @pytest.mark.usefixtures("run_once")
    def test_raw_data_have_a_record_per_task(self, table, query) -> None:
        records = np.frombuffer(table.pfnProfilingQueryGetData(query, RAW), TASK_TIME)
        tasks = table.pfnProfilingQueryGetData(query, TASKS)
        begins = sorted(records["begin_ns"].tolist())
        assert begins == [task.start_time_ns for task in tasks]

    @pytest.mark.usefixtures("run_once")
    def test_cycles_are_of_the_clock_of_the_executing_unit(self, rig, table, query) -> None:
        platform = rig.device.platform
        for task in table.pfnProfilingQueryGetData(query, TASKS):
            is_dpu = task.exec_type is ENGINES[Engine.DPU]
            clock = platform.dpu_mhz if is_dpu else platform.cmx_mhz
            cycles = task.active_cycles + task.stall_cycles
            assert abs(cycles - task.duration_ns * clock / 1000) <= 2

    @pytest.mark.usefixtures("run_once")
    def test_times_do_not_depend_on_the_run_or_the_addresses_of_arguments(
        self, rig, table, graph, query, x
    ) -> None:
        before = table.pfnProfilingQueryGetData(query, TASKS)
        other = table.pfnProfilingQueryCreate(query.pool, 1)
        rig.arguments(graph, x)
        rig.execute(recorded(rig, graph, other))
        assert table.pfnProfilingQueryGetData(other, TASKS) == before


class TestRefusals:
    def test_a_query_of_a_failed_inference_is_not_ready(self, rig, table, query) -> None:
        def fail() -> None:
            raise DeviceFault("no such thing")

        query.profile(lambda: None)
        with pytest.raises(DeviceFault):
            query.profile(fail)
        get = table.pfnProfilingQueryGetData
        rig.fails(r.ZE_RESULT_NOT_READY, lambda: get(query, LAYERS))

    def test_a_query_that_was_not_run_is_not_ready(self, rig, table, graph, query, x) -> None:
        get = table.pfnProfilingQueryGetData
        rig.fails(r.ZE_RESULT_NOT_READY, lambda: get(query, LAYERS))
        assert "query 0" in table.pfnProfilingLogGetString(query)
        rig.arguments(graph, x)
        commands = recorded(rig, graph, query)
        rig.fails(r.ZE_RESULT_NOT_READY, lambda: get(query, LAYERS))
        rig.execute(commands)
        assert get(query, LAYERS)
        assert not table.pfnProfilingLogGetString(query)

    @pytest.mark.usefixtures("run_once")
    def test_an_unknown_type_is_rejected(self, rig, table, query) -> None:
        get = table.pfnProfilingQueryGetData
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ENUMERATION, lambda: get(query, 3))

    def test_a_graph_without_a_layer_map_cannot_be_profiled(self, rig, table) -> None:
        graph = rig.graph(dense_blob())
        create = table.pfnProfilingPoolCreate
        error = rig.fails(r.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, lambda: create(graph, 1))
        assert SECTION_NAME in str(error)

    def test_a_damaged_layer_map_is_rejected(self, rig, table) -> None:
        builder = dense_builder()
        builder.add(SECTION_NAME, b"LYR1", SectionFlag(0))
        graph = rig.graph(builder.build())
        create = table.pfnProfilingPoolCreate
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: create(graph, 1))

    @pytest.mark.parametrize("lost", list(OWNERS))
    def test_tasks_without_a_layer_are_rejected(self, rig, table, x, lost) -> None:
        graph = rig.graph(named_blob({**OWNERS, lost: []}))
        query = table.pfnProfilingQueryCreate(table.pfnProfilingPoolCreate(graph, 1), 0)
        rig.arguments(graph, x)
        rig.execute(recorded(rig, graph, query))
        get = table.pfnProfilingQueryGetData
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: get(query, LAYERS))

    def test_each_index_of_a_pool_holds_one_query(self, rig, table, graph) -> None:
        create = table.pfnProfilingPoolCreate
        rig.fails(r.ZE_RESULT_ERROR_INVALID_SIZE, lambda: create(graph, 0))
        pool = create(graph, 1)
        query = table.pfnProfilingQueryCreate(pool, 0)
        for index in (0, 1, -1):
            wrong = r.ZE_RESULT_ERROR_INVALID_ARGUMENT
            rig.fails(wrong, lambda index=index: table.pfnProfilingQueryCreate(pool, index))
        end = table.pfnProfilingPoolDestroy
        rig.fails(r.ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, lambda: end(pool))
        table.pfnProfilingQueryDestroy(query)
        end(pool)
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: end(pool))

    def test_a_query_of_another_graph_is_rejected(self, rig, query, x) -> None:
        other = rig.graph(named_blob())
        rig.arguments(other, x)
        wrong = r.ZE_RESULT_ERROR_INVALID_ARGUMENT
        rig.fails(wrong, lambda: recorded(rig, other, query))

    def test_an_inference_outlives_its_query(self, rig, table, graph, query, x) -> None:
        y = rig.arguments(graph, x)
        commands = recorded(rig, graph, query)
        table.pfnProfilingQueryDestroy(query)
        rig.execute(commands)
        assert is_expected(rig.values(y), x)
        get = table.pfnProfilingQueryGetData
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: get(query, LAYERS))
