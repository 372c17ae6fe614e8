"""Models that the graph compiler of another distribution compiles for the driver."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from driver_layer import ze
from driver_layer.testing.blobs import is_expected
from driver_layer.ze import ze_result_t as r
from driver_layer.ze.graph_compiler import GROUP, installed_compiler

MODEL = ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NGRAPH_LITE
FLAGS = ze.ze_graph_properties_flag_t
COMPILED = FLAGS.ZE_GRAPH_PROPERTIES_FLAG_COMPILED
FREED = FLAGS.ZE_GRAPH_PROPERTIES_FLAG_NO_STANDARD_ALLOCATION
PROFILING = ze.ze_graph_flags_t.ZE_GRAPH_FLAG_ENABLE_PROFILING

COMPILER = """
from driver_layer.errors import GraphCompilerError
from driver_layer.testing.blobs import dense_blob

class Compiler:
    version = (7, 6)
    identity = "of the test"
    seen = []

    def supported_options(self):
        return ("NPU_PLATFORM", "PERF_COUNT")

    def is_option_supported(self, option, value):
        return option == "PERF_COUNT" and value in (None, "YES", "NO")

    def compile(self, model, build_flags, platform):
        self.seen.append((bytes(model), build_flags, platform.name))
        if model == b"bad":
            raise GraphCompilerError("op Foo: not supported; replace it")
        if model == b"bug":
            raise KeyError("oops")
        return dense_blob()

    def query(self, model, build_flags, platform):
        return ("a", "b c")
"""


def install(path: Path, module: str, source: str, place: str) -> None:
    """Install a distribution with one module and one entry point of the group."""
    (path / f"{module}.py").write_text(source)
    info = path / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nnpu = {module}{place}\n")


@pytest.fixture
def alone(rig, monkeypatch) -> Iterator[None]:
    """Forget the compiler before and after the test, and hide installed ones from the device."""
    paths = [path for path in sys.path if "site-packages" not in path and "_layer" not in path]
    monkeypatch.setattr(sys, "path", paths)
    installed_compiler.cache_clear()
    yield
    installed_compiler.cache_clear()


@pytest.fixture
def compiler(alone, monkeypatch, tmp_path) -> type:
    install(tmp_path, "compiler_of_the_test", COMPILER, ":Compiler")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found = installed_compiler()
    assert found is not None
    return type(found)


def model(content: bytes, **fields: object) -> ze.ze_graph_desc_2_t:
    return ze.ze_graph_desc_2_t(MODEL, content, **fields)


class TestWithoutCompiler:
    def test_only_native_graphs_are_supported(self, alone, rig) -> None:
        found = rig.table.pfnDeviceGetGraphProperties(rig.device)
        assert found.graphFormatsSupported == ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE
        assert found.compilerVersion == ze.ze_graph_compiler_version_info_t(0, 0)
        unsupported = r.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
        create = rig.table.pfnCreate2
        rig.fails(unsupported, lambda: create(rig.context, rig.device, model(b"<net/>")))
        assert "no graph compiler" in rig.table.pfnBuildLogGetString()
        options = ze.ze_npu_options_type_t.ZE_NPU_COMPILER_OPTIONS
        ask = rig.table.pfnCompilerGetSupportedOptions
        rig.fails(unsupported, lambda: ask(rig.device, options))

    def test_a_compiler_that_cannot_be_imported_is_an_unavailable_dependency(
        self, alone, rig, monkeypatch, tmp_path
    ) -> None:
        install(tmp_path, "broken_compiler", "import nothing_of_this_name", ":Compiler")
        monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
        create = rig.table.pfnCreate2
        code = r.ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE
        error = rig.fails(code, lambda: create(rig.context, rig.device, model(b"x")))
        assert "nothing_of_this_name" in str(error)


class TestCompilation:
    def test_a_model_is_compiled_and_runs(self, compiler, rig, x) -> None:
        graph = rig.table.pfnCreate2(rig.context, rig.device, model(b"m", pBuildFlags="--a"))
        assert compiler.seen[-1] == (b"m", "--a", "4000")
        assert rig.table.pfnGetProperties3(graph).flags == COMPILED | FREED
        y = rig.arguments(graph, x)
        rig.execute(rig.recorded(graph))
        assert is_expected(rig.values(y), x)

    def test_the_profiling_flag_becomes_an_option(self, compiler, rig) -> None:
        for flags, expected in (
            (None, ' --config PERF_COUNT="YES"'),
            ('--config A="1"', '--config A="1" PERF_COUNT="YES"'),
        ):
            desc = model(b"m", pBuildFlags=flags, flags=PROFILING)
            rig.table.pfnCreate2(rig.context, rig.device, desc)
            assert compiler.seen[-1][1] == expected

    def test_the_text_of_the_compiler_is_in_both_logs(self, compiler, rig) -> None:
        create = rig.table.pfnCreate3
        code = r.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
        error = rig.fails(code, lambda: create(rig.context, rig.device, model(b"bad")))
        assert isinstance(error, ze.GraphCreationError)
        assert rig.table.pfnBuildLogGetString2(error.log) == "op Foo: not supported; replace it"
        assert "op Foo" in rig.table.pfnBuildLogGetString(None)
        rig.table.pfnBuildLogDestroy(error.log)
        get = rig.table.pfnBuildLogGetString2
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: get(error.log))
        _, log = create(rig.context, rig.device, model(b"good"))
        assert "cache_status_t::stored" in rig.table.pfnBuildLogGetString2(log)

    def test_a_defect_of_the_compiler_is_an_unknown_error(self, compiler, rig) -> None:
        create = rig.table.pfnCreate
        desc = ze.ze_graph_desc_t(MODEL, b"bug")
        rig.fails(r.ZE_RESULT_ERROR_UNKNOWN, lambda: create(rig.context, rig.device, desc))

    def test_unknown_formats_and_flags_and_empty_input_are_rejected(self, compiler, rig) -> None:
        create = rig.table.pfnCreate2
        for desc, code in (
            (ze.ze_graph_desc_2_t(7, b"m"), r.ZE_RESULT_ERROR_INVALID_ENUMERATION),
            (model(b"m", flags=1 << 9), r.ZE_RESULT_ERROR_INVALID_ENUMERATION),
            (model(b""), r.ZE_RESULT_ERROR_INVALID_SIZE),
            (model(None), r.ZE_RESULT_ERROR_INVALID_NULL_POINTER),
        ):
            rig.fails(code, lambda desc=desc: create(rig.context, rig.device, desc))


class TestQueries:
    def test_the_device_reports_the_compiler(self, compiler, rig) -> None:
        found = rig.table.pfnDeviceGetGraphProperties(rig.device)
        assert found.graphFormatsSupported == 3
        assert found.compilerVersion == ze.ze_graph_compiler_version_info_t(7, 6)

    def test_supported_layers_are_in_angle_brackets(self, compiler, rig) -> None:
        query = rig.table.pfnQueryNetworkCreate2(rig.context, rig.device, model(b"m"))
        assert rig.table.pfnQueryNetworkGetSupportedLayers(query) == "<a><b c>"
        rig.table.pfnQueryNetworkDestroy(query)
        get = rig.table.pfnQueryNetworkGetSupportedLayers
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ARGUMENT, lambda: get(query))
        native = ze.ze_graph_desc_t(ze.ze_graph_format_t.ZE_GRAPH_FORMAT_NATIVE, b"m")
        create = rig.table.pfnQueryNetworkCreate
        code = r.ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION
        rig.fails(code, lambda: create(rig.context, rig.device, native))

    def test_options_are_those_of_the_compiler(self, compiler, rig) -> None:
        of_compiler, of_driver = ze.ze_npu_options_type_t
        ask, check = (
            rig.table.pfnCompilerGetSupportedOptions,
            rig.table.pfnCompilerIsOptionSupported,
        )
        assert ask(rig.device, of_compiler) == "NPU_PLATFORM PERF_COUNT"
        assert ask(rig.device, of_driver) == ""
        check(rig.device, of_compiler, "PERF_COUNT", "YES")
        unsupported = r.ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
        for kind, option, value in (
            (of_compiler, "PERF_COUNT", "MAYBE"),
            (of_compiler, "NPU_TILES", None),
            (of_driver, "PERF_COUNT", None),
        ):
            rig.fails(
                unsupported,
                lambda kind=kind, option=option, value=value: check(
                    rig.device, kind, option, value
                ),
            )
        rig.fails(r.ZE_RESULT_ERROR_INVALID_ENUMERATION, lambda: ask(rig.device, 3))
