"""PERF_COUNT and NPU_PROFILING_TYPE: profiles of requests' inferences."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw.conftest import SMALL, Talk, Talks, write_tiny
from tests.npuw.faulty_device import FaultyDevice

from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import Core
from npuw_layer.backends.compiler_layer import StaticCompiler
from npuw_layer.backends.level_zero import LevelZeroDevice
from npuw_layer.backends.recording import recording
from npuw_layer.errors import DeviceError, NpuwUsageError, OptionError
from npuw_layer.execution.profiling.info import ProfilingInfo, Status
from npuw_layer.llm.plan.stages import StageKind
from npuw_layer.options import parse_options
from npuw_layer.testing.check_device import CONFIG, ROWS, WIDTH, small_graph

PERF_COUNT = {"PERF_COUNT": "YES"}
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}
NPUW = {"NPU_USE_NPUW": "YES"}
X = np.ones((ROWS, WIDTH), np.float32)


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small static model, with a matmul named "product"."""
    path = tmp_path_factory.mktemp("static") / "model.xml"
    write_ir(small_graph(), path)
    return path


def request_of(model: Path, **options: Any) -> Any:
    return Core().compile_model(model, "NPU", EXACT | options).create_infer_request()


def names(request: Any) -> list[str]:
    return [info.node_name for info in request.profiling_info]


def owners(request: Any) -> list[str]:
    """Return the owners of the layers, each once, in order."""
    return list(dict.fromkeys(name.split(": ")[0] for name in names(request)))


class TestStaticModels:
    def test_layers_are_reported_by_name(self, static) -> None:
        request = request_of(static, **PERF_COUNT)
        request.infer({"x": X})
        (product,) = (info for info in request.profiling_info if info.node_name == "product")
        assert (product.node_type, product.exec_type) == ("MatMul", "DPU")
        assert product.status is ProfilingInfo.Status.EXECUTED
        assert timedelta() < product.cpu_time
        assert request.get_profiling_info() == request.profiling_info

    def test_layers_of_a_model_through_npuw_have_a_subgraph(self, static) -> None:
        request = request_of(static, **PERF_COUNT, **NPUW)
        request.infer({"x": X})
        assert "subgraph0: product" in names(request)

    def test_subgraphs_are_numbered_in_their_order(self, static) -> None:
        cut = {"NPUW_ONLINE_ISOLATE": "Op:MatMul/mix"}
        request = request_of(static, **PERF_COUNT, **NPUW, **cut)
        request.infer({"x": X})
        assert "subgraph1: product" in names(request)
        assert owners(request)[:2] == ["subgraph0", "subgraph1"]

    def test_with_several_devices_only_the_npu_is_profiled(self, static) -> None:
        on_npu = request_of(static, **PERF_COUNT, **NPUW, NPUW_DEVICES="NPU,CPU")
        on_cpu = request_of(static, **PERF_COUNT, **NPUW, NPUW_DEVICES="CPU")
        for request in (on_npu, on_cpu):
            request.infer({"x": X})
        assert "subgraph0: product" in names(on_npu)
        assert names(on_cpu) == []

    def test_dumped_tensors_are_the_same_as_without_profiling(self, static, tmp_path) -> None:
        for options in ({}, PERF_COUNT):
            folder = tmp_path / str(len(options))
            dumps = {"NPUW_DUMP_IO": "YES", "NPUW_DUMP_SUBS_DIR": str(folder)}
            cut = {"NPUW_ONLINE_ISOLATE": "Op:MatMul/mix"}
            request = request_of(static, **options, **NPUW, **dumps, **cut)
            request.infer({"x": X})
        files = [{path.name for path in folder.iterdir()} for folder in tmp_path.iterdir()]
        assert files[0] == files[1]
        assert any(name.endswith(".bin") for name in files[0])

    def test_an_asynchronous_inference_is_profiled(self, static) -> None:
        request = request_of(static, **PERF_COUNT)
        request.start_async({"x": X})
        request.wait()
        assert "product" in names(request)

    def test_each_inference_has_its_own_and_equal_profile(self, static) -> None:
        request = request_of(static, **PERF_COUNT)
        request.infer({"x": X})
        first = request.profiling_info
        request.infer({"x": -X})
        assert request.profiling_info == first

    def test_profiles_of_requests_are_independent(self, static) -> None:
        compiled = Core().compile_model(static, "NPU", EXACT | PERF_COUNT)
        one, two = compiled.create_infer_request(), compiled.create_infer_request()
        one.infer({"x": X})
        with pytest.raises(NpuwUsageError):
            _ = two.profiling_info
        assert names(one)


class TestWhatIsTold:
    """Rules of OpenVINO's NPU plugin (its zero_infer_request and zero_pipeline)."""

    @pytest.mark.parametrize("options", [{}, PERF_COUNT])
    def test_before_an_inference_no_profile_exists(self, static, options) -> None:
        request = request_of(static, **options)
        with pytest.raises(NpuwUsageError, match="no inference has run yet"):
            _ = request.profiling_info

    @pytest.mark.parametrize("options", [{}, {"PERF_COUNT": "NO"}, {"NPU_PROFILING_TYPE": "INFER"}])
    def test_without_the_option_nothing_is_recorded(self, static, options) -> None:
        request = request_of(static, **options)
        with recording() as runs:
            request.infer({"x": X})
        assert request.profiling_info == []
        assert runs == []

    def test_infer_reports_statistics_of_inferences(self, static) -> None:
        request = request_of(static, **PERF_COUNT, NPU_PROFILING_TYPE="INFER")
        with recording() as runs:
            for _ in range(3):
                request.infer({"x": X})
        took = timedelta(microseconds=runs[0].total_ns // 1000)
        expected = [
            ProfilingInfo(Status.EXECUTED, took, took, name, name, name)
            for name in ("AVG", "MIN", "MAX")
        ]
        assert request.profiling_info == expected
        assert len(runs) == 3

    def test_infer_reports_averages_of_inferences_of_several_lengths(self, tiny) -> None:
        talk = Talk(request_of(tiny, **SMALL, **PERF_COUNT, NPU_PROFILING_TYPE="INFER"))
        with recording() as prompt:
            talk.tell(list(range(40)))
        with recording() as step:
            talk.tell([7])
        took = sorted(sum(run.total_ns for run in runs) for runs in (prompt, step))
        average, least, most = (info.real_time for info in talk.request.profiling_info)
        assert took[0] < took[1]
        told = (sum(took) // 2, *took)
        found = (average, least, most)
        assert found == tuple(timedelta(microseconds=ns // 1000) for ns in told)

    @pytest.mark.parametrize(
        ("option", "value"), [("PERF_COUNT", "SOME"), ("NPU_PROFILING_TYPE", "LAYERS")]
    )
    def test_other_values_are_rejected(self, option, value) -> None:
        with pytest.raises(OptionError, match=option):
            parse_options({option: value})

    def test_a_failed_inference_is_not_counted(self, tiny) -> None:
        device = FaultyDevice(LevelZeroDevice(StaticCompiler(), "4000"), good_runs=0)
        options = SMALL | PERF_COUNT | {"NPU_PROFILING_TYPE": "INFER"}
        request = Core(device=device).compile_model(tiny, "NPU", options).create_infer_request()
        with pytest.raises(DeviceError):
            Talk(request).tell([1, 2, 3])
        assert request.profiling_info == []


class TestTimes:
    def test_times_equal_the_prediction_of_the_cost_model(self) -> None:
        device = LevelZeroDevice(StaticCompiler(), "4000")
        device.profile_programs()
        blob = device.compile(small_graph(), CONFIG)
        loaded = device.load(blob)
        program = loaded.create_program()
        for info in (*loaded.inputs, *loaded.outputs):
            program.bind(info.name, device.allocate(4096), 0)
        with recording() as runs:
            program.run()
        assert runs[0].total_ns == round(device.predict(blob).ns)

    def test_a_conversation_takes_the_sum_of_its_static_models(self, tiny) -> None:
        compiled = Core().compile_model(tiny, "NPU", SMALL | PERF_COUNT)
        device = LevelZeroDevice(StaticCompiler(), "4000")
        costs = {
            stage.name: round(device.predict(program).ns)
            for stage, program in compiled._compiled.programs.items()
        }
        talk = Talk(compiled.create_infer_request())
        with recording() as runs:
            talk.tell([1, 2, 3])
            talk.tell([4])
        assert {run.labels[0] for run in runs} <= costs.keys()
        for run in runs:
            assert run.total_ns == costs[run.labels[0]]

    def test_layers_are_within_their_inference(self, tiny) -> None:
        talk = Talk(request_of(tiny, **SMALL, **PERF_COUNT))
        with recording() as runs:
            talk.tell([1, 2, 3])
        whole = sum(run.total_ns for run in runs)
        for info in talk.request.profiling_info:
            assert info.real_time <= timedelta(microseconds=whole / 1000)
        assert whole > 0


class TestSplitModels:
    @pytest.fixture
    def talk(self, talks: Talks) -> Talk:
        return talks(**PERF_COUNT)

    def test_a_prompt_runs_prefill_and_lm_head_and_a_token_runs_generate(self, talk) -> None:
        talk.tell([1, 2, 3, 4, 5])
        kinds = [name.split("_")[0] for name in owners(talk.request)]
        assert kinds == [StageKind.PREFILL.value, "lm"]
        talk.tell([6])
        kinds = [name.split("_")[0] for name in owners(talk.request)]
        assert kinds == [StageKind.GENERATE.value, "lm"]
        assert any(name.endswith("mlp.down_proj") for name in names(talk.request))

    def test_a_long_prompt_is_profiled_chunk_by_chunk(self, tiny) -> None:
        chunked = {"NPUW_LLM_PREFILL_CHUNK_SIZE": 32}
        talk = Talk(request_of(tiny, **SMALL, **PERF_COUNT, **chunked))
        talk.tell(list(range(90)))
        found = names(talk.request)
        assert sum(name.endswith("layers.0.mlp.down_proj") for name in found) == 3
        assert found[-1].endswith("lm_head")

    def test_logits_are_the_same_as_without_profiling(self, talks) -> None:
        ids = [3, 1, 4, 1, 5]
        expected = talks().tell(ids)
        np.testing.assert_array_equal(talks(**PERF_COUNT).tell(ids), expected)

    def test_submodels_of_a_stage_are_numbered(self, tiny) -> None:
        cut = {"NPUW_ONLINE_ISOLATE": "P:SDPA/attn"}
        talk = Talk(request_of(tiny, **SMALL, **PERF_COUNT, **cut))
        talk.tell([1, 2, 3])
        stages = {tuple(name.split(": ")[:2]) for name in names(talk.request)}
        assert any(part == "subgraph1" for _, part in stages)


class TestPrograms:
    def test_programs_cached_without_profiling_are_reused(self, tmp_path) -> None:
        model = tmp_path / "model"
        model.mkdir()
        write_tiny(model)
        cache = {"CACHE_DIR": str(tmp_path / "cache")}

        def blobs(**options: Any) -> str:
            compiled = Core().compile_model(model, "NPU", SMALL | cache | options)
            return compiled.create_infer_request().execution_report()["blobs"]

        assert "compiled" in blobs()
        assert "compiled" not in blobs(**PERF_COUNT, NPU_PROFILING_TYPE="INFER")

    def test_a_blob_is_the_same_and_can_be_imported_with_profiling(
        self, static, export: Callable[..., bytes]
    ) -> None:
        plain = export(static)
        assert export(static, **PERF_COUNT) == plain
        request = Core().import_model(plain, "NPU", PERF_COUNT).create_infer_request()
        request.infer({"x": X})
        assert "product" in names(request)

    @pytest.fixture
    def export(self, tmp_path) -> Callable[..., bytes]:
        def exported(model: Path, **options: Any) -> bytes:
            path = tmp_path / "model.blob"
            config = EXACT | {"CACHE_MODE": "OPTIMIZE_SPEED"} | options
            Core().compile_model(model, "NPU", config).export_model(path)
            return path.read_bytes()

        return exported
