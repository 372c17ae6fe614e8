"""The compiler behind the driver: from serialized models to results, and errors on the way."""

from __future__ import annotations

import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from tests.compiler.in_driver.caller import serialized
from tests.conftest import ROOT

from compiler_layer.in_driver.compiler import DriverCompiler
from compiler_layer.in_driver.serialized_model import write_serialized_model
from driver_layer import ze
from driver_layer.abi.platforms import PLATFORMS, parse_platform
from driver_layer.errors import GraphCompilerError
from driver_layer.ze.graph_compiler import GROUP, GraphCompiler

NPU = PLATFORMS["4000"]


def test_the_driver_finds_the_compiler_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "compiler_layer" / "pyproject.toml").read_text())["project"]
    ((name, value),) = project["entry-points"][GROUP].items()
    compiler: GraphCompiler = EntryPoint(name, value, GROUP).load()()
    assert isinstance(compiler, DriverCompiler)


def test_a_serialized_model_computes(caller, dense) -> None:
    (y,) = caller.infer(caller.graph(dense.serialized()), dense.x)
    assert np.allclose(y, dense.expected, rtol=1e-2, atol=1e-2)


def test_the_blob_keeps_nothing_of_the_buffer(caller, dense) -> None:
    buffer = bytearray(dense.serialized())
    graph = caller.graph(buffer)
    buffer[:] = bytes(len(buffer))
    (y,) = caller.infer(graph, dense.x)
    assert np.allclose(y, dense.expected, rtol=1e-2, atol=1e-2)


def test_threads_compile_at_once(dense) -> None:
    model, compiler = dense.serialized(), DriverCompiler()
    once = compiler.compile(memoryview(model), "", NPU)
    with ThreadPoolExecutor(4) as threads:
        many = threads.map(lambda _: compiler.compile(memoryview(model), "", NPU), range(8))
    assert all(blob == once for blob in many)


def test_a_device_of_its_own_numbers_is_compiled_for(dense) -> None:
    numbers = (Path(ze.__file__).parents[1] / "abi" / "platforms" / "4000.toml").read_text()
    small = parse_platform(numbers.replace("\ntiles = 6", "\ntiles = 1").encode(), "small.toml")
    assert small.tiles == 1
    compiler, model = DriverCompiler(), memoryview(dense.serialized())
    flags = '--config NPU_PLATFORM="4000"'
    assert compiler.compile(model, flags, small) != compiler.compile(model, flags, NPU)


class TestProfiling:
    def test_of_a_graph_that_was_compiled_for_it(self, caller, dense) -> None:
        graph = caller.graph(dense.serialized(), '--config PERF_COUNT="YES"')
        flag = ze.ze_graph_properties_flag_t.ZE_GRAPH_PROPERTIES_FLAG_PROFILING_ENABLED
        assert caller.table.pfnGetProperties3(graph).flags & flag
        pool = caller.profiling.pfnProfilingPoolCreate(graph, 1)
        query = caller.profiling.pfnProfilingQueryCreate(pool, 0)
        caller.infer(graph, dense.x, query=query)
        kind = ze.ze_graph_profiling_type_t.ZE_GRAPH_PROFILING_LAYER_LEVEL
        layers = caller.profiling.pfnProfilingQueryGetData(query, kind)
        assert "product" in {layer.name for layer in layers}

    def test_not_of_other_graphs(self, caller, dense) -> None:
        graph = caller.graph(dense.serialized())
        flag = ze.ze_graph_properties_flag_t.ZE_GRAPH_PROPERTIES_FLAG_PROFILING_ENABLED
        assert not caller.table.pfnGetProperties3(graph).flags & flag


class TestErrors:
    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"", "too few for its header"),
            (write_serialized_model((7, 6), b"<net", b""), "is not an OpenVINO IR"),
            (write_serialized_model((7, 6), b'<net version="11"/>', b""), "it has no layers"),
            (
                write_serialized_model((7, 6), b'<!DOCTYPE x><net version="11"/>', b""),
                "not allowed",
            ),
        ],
    )
    def test_of_content_name_the_serialized_model(self, content: bytes, reason: str) -> None:
        for call in (DriverCompiler().compile, DriverCompiler().query):
            with pytest.raises(GraphCompilerError, match=reason) as raised:
                call(memoryview(content), "", NPU)
            assert "the serialized model" in str(raised.value)

    def test_of_weights_name_the_layer(self, dense) -> None:
        xml, _, weights = dense.serialized().partition(b"</net>")
        del weights
        with pytest.raises(GraphCompilerError, match="layer 'weights'"):
            DriverCompiler().compile(memoryview(_repacked(xml + b"</net>")), "", NPU)

    def test_of_flags_show_the_place(self, dense) -> None:
        with pytest.raises(GraphCompilerError, match="build flags at '--wrong'"):
            DriverCompiler().compile(memoryview(dense.serialized()), "--wrong", NPU)

    def test_reach_the_build_log(self, caller, dense) -> None:
        with pytest.raises(Exception, match="dynamic batch"):
            caller.graph(serialized(dense.model(batch=-1)))
        assert "dynamic batch" in caller.table.pfnBuildLogGetString()


def _repacked(content: bytes) -> bytes:
    """Return a serialized model with the XML of a truncated one, and no weights."""
    return write_serialized_model((7, 6), content[16:], b"")
