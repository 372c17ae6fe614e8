"""Handling of batches of static models (NPU_BATCH_MODE), also in caches and blobs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from tests.npuw.kinds.static.batches import (
    COMPILER,
    EXACT,
    OUT,
    PLUGIN,
    WIDTH,
    assert_same,
    doubled,
    items,
    outcome,
    scorer,
)
from tests.npuw.kinds.static.native import RAW, described, payload

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from npuw_layer import BatchedCompiledModel, Core, StaticCompiledModel
from npuw_layer.errors import BlobError, ModelError, OptionError
from npuw_layer.storage.native_blob.container import read_blob

# Models that run item by item.


def unequal() -> Model:
    shapes = [("a", tensor("f32", (3, 4))), ("b", tensor("f32", (1, 4)))]
    model, (a, b) = Model.build(shapes)
    model.set_outputs([("y", GraphBuilder(model).op(elementwise.Add, a, b))])
    return model


def test_plugin_rejects_models_without_separable_items(write, graphs) -> None:
    for graph, message in (
        (graphs["recurrent"](), "PLUGIN: the model has variables, which items would share"),
        (unequal(), "differ: input 'a' has 3 and input 'b' has 1"),
    ):
        with pytest.raises(OptionError, match=message):
            Core().compile_model(write(graph), "NPU", EXACT | PLUGIN)


def test_plugin_requires_the_npu_itself(open_batch) -> None:
    through = {"NPU_USE_NPUW": "YES", "NPUW_LLM": "NO"}
    with pytest.raises(OptionError, match="NPU_BATCH_MODE = PLUGIN applies only to static"):
        Core().compile_model(open_batch, "NPU", EXACT | PLUGIN | through)
    one = Core().compile_model(open_batch, "NPU", EXACT | through)
    assert isinstance(one, StaticCompiledModel)
    assert one.input("ids").shape == (1, 3)


def test_the_compiler_rejects_an_open_batch(open_batch) -> None:
    with pytest.raises(OptionError, match=r"COMPILER: input 'ids' is \[\?,3\], but programs have"):
        Core().compile_model(open_batch, "NPU", EXACT | COMPILER)
    with pytest.raises(OptionError, match="NPU_BATCH_MODE"):
        Core().compile_model(open_batch, "NPU", EXACT | {"NPU_BATCH_MODE": "BOTH"})


def test_an_output_with_another_first_dimension_has_no_batch(write) -> None:
    model, (x,) = Model.build([("x", tensor("f32", (-1, 4)))])
    g = GraphBuilder(model)
    model.set_outputs([("y", g.reshape(x, -1, 2))])
    with pytest.raises(ModelError, match=r"output 'y' is \[2, 2\] for one item"):
        Core().compile_model(write(model), "NPU", EXACT)


# Caches and blobs.


def test_a_second_start_reads_no_graph(open_batch, opened, tmp_path) -> None:
    cached = EXACT | {"CACHE_DIR": str(tmp_path)}
    Core().compile_model(open_batch, "NPU", cached)
    start = f"""
import sys
import numpy as np
from npuw_layer import BatchedCompiledModel, Core
compiled = Core().compile_model({str(open_batch)!r}, "NPU", {cached!r})
assert isinstance(compiled, BatchedCompiledModel)
assert compiled.get_property("LOADED_FROM_CACHE")
inputs = np.zeros((2, 3), np.int64), np.ones((2, 3, {WIDTH}), np.float32)
print(compiled(inputs)["scores"].tobytes().hex())
assert "xdsl" not in sys.modules
"""
    argv = [sys.executable, "-c", start]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    inputs = {"ids": np.zeros((2, 3), np.int64), "gain": np.ones((2, 3, WIDTH), np.float32)}
    assert done.stdout.strip() == outcome(opened, inputs)["scores"].tobytes().hex()


def test_batch_modes_have_separate_cache_entries(fixed_batch, tmp_path) -> None:
    cached = EXACT | {"CACHE_DIR": str(tmp_path)}
    for found in (False, True):
        for mode in (COMPILER, PLUGIN):
            compiled = Core().compile_model(fixed_batch, "NPU", cached | mode)
            assert compiled.get_property("LOADED_FROM_CACHE") == found
            assert isinstance(compiled, BatchedCompiledModel) == (mode is PLUGIN)
            assert outcome(compiled, items(3))["scores"].shape == (3, 3, OUT)


@pytest.mark.parametrize("batch", [-1, 3])
def test_a_blob_stores_the_batch(write, batch: int) -> None:
    whole = EXACT | PLUGIN | {"CACHE_MODE": "OPTIMIZE_SPEED"}
    compiled = Core().compile_model(write(scorer(batch)), "NPU", whole)
    blob = compiled.export_model()
    metadata = read_blob(memoryview(blob)).metadata
    assert metadata is not None
    assert metadata.batch == batch
    expected = outcome(compiled, items(3))
    by_others = described(payload(blob), batch=batch)
    for content in (blob, by_others):
        again = Core().import_model(content, "NPU")
        assert isinstance(again, BatchedCompiledModel)
        assert again.input("ids").partial_shape == (batch, 3)
        assert_same(outcome(again, items(3)), expected)
    one = Core().import_model(payload(blob), "NPU", RAW)  # an ELF states no batch
    assert isinstance(one, StaticCompiledModel)
    assert one.input("ids").shape == (1, 3)


def test_a_blob_through_npuw_takes_the_complete_batch(fixed_batch) -> None:
    compiled = Core().compile_model(fixed_batch, "NPU", EXACT | {"NPU_USE_NPUW": "YES"})
    given = {"MODEL_PTR": str(fixed_batch)}
    again = Core().import_model(compiled.export_model(), "NPU", given)
    assert isinstance(again, StaticCompiledModel)
    assert_same(outcome(again, items(3)), outcome(compiled, items(3)))


def test_a_blob_with_an_invalid_batch_is_rejected(write, graphs) -> None:
    speed = EXACT | {"CACHE_MODE": "OPTIMIZE_SPEED"}
    three, stateful = (
        payload(Core().compile_model(write(graph), "NPU", speed).export_model())
        for graph in (doubled(3), graphs["recurrent"]())
    )
    for batch, said in ((3, "a batch of 3"), (-1, "any batch")):
        with pytest.raises(BlobError, match=f"{said} item by item, but its program does not take"):
            Core().import_model(described(three, batch=batch), "NPU")
    with pytest.raises(BlobError, match="variables"):
        Core().import_model(described(stateful, batch=4), "NPU")
