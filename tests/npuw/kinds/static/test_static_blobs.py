"""Static models as files: imports equal the exported model to the bit; damage is rejected."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npuw_layer import Core, StaticCompiledModel
from npuw_layer.errors import BlobError, BlobVersionError, ModelError, NpuwError, OptionError

EXACT = {"INFERENCE_PRECISION_HINT": "f32"}
MODES = ["OPTIMIZE_SIZE", "OPTIMIZE_SPEED"]


def answers(compiled: StaticCompiledModel, model) -> list[dict[str, np.ndarray]]:
    request = compiled.create_infer_request()
    return [request.infer(model.inputs(seed)) for seed in range(3)]


def assert_same(compiled: StaticCompiledModel, model) -> None:
    assert isinstance(compiled, StaticCompiledModel)
    for one, other in zip(answers(compiled, model), answers(model.compiled, model), strict=True):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.matrix
@pytest.mark.parametrize("through", ["NO", "YES"], ids=["as it is", "through NPUW"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["classifier", "recurrent"])
def test_exports_are_imported(compile_static, graphs, tmp_path, name, mode, through) -> None:
    model = compile_static(graphs[name](), CACHE_MODE=mode, NPU_USE_NPUW=through)
    content = model.compiled.export_model()
    path = tmp_path / "model.blob"
    model.compiled.export_model(path)
    assert path.read_bytes() == content
    where = {} if mode == "OPTIMIZE_SPEED" else {"MODEL_PTR": str(model.path)}
    for source in (path, content, io.BytesIO(content)):
        loaded = Core().import_model(source, "NPU", where)
        assert_same(loaded, model)
    assert not loaded.get_property("LOADED_FROM_CACHE")
    assert loaded.get_property("INFERENCE_PRECISION_HINT") == "f32"
    assert loaded.export_model() == content


@pytest.mark.parametrize("parts", [{}, {"NPUW_ONLINE_ISOLATE": "Op:Tanh/last"}])
def test_a_partitioned_model_is_imported_unchanged(compile_static, graphs, parts) -> None:
    options = {"CACHE_MODE": "OPTIMIZE_SPEED", "NPU_USE_NPUW": "YES"}
    model = compile_static(graphs["recurrent"](), **options, **parts)
    assert_same(Core().import_model(model.compiled.export_model(), "NPU"), model)


def test_a_blob_is_imported_into_the_core_of_its_live_exporter(compile_static, graphs) -> None:
    model = compile_static(graphs["recurrent"](), CACHE_MODE="OPTIMIZE_SPEED")
    assert_same(model.core.import_model(model.compiled.export_model(), "NPU"), model)


def test_weights_are_found_by_file_or_by_model(compile_static, graphs, tmp_path) -> None:
    model = compile_static(graphs["classifier"]())
    content = model.compiled.export_model()
    with pytest.raises(OptionError, match=r"model\.bin\); set WEIGHTS_PATH .* or MODEL_PTR"):
        Core().import_model(content, "NPU")
    weights = model.path.with_suffix(".bin")
    for where in ({"WEIGHTS_PATH": str(weights)}, {"WEIGHTS_PATH": str(weights.parent)}):
        assert_same(Core().import_model(content, "NPU", where), model)
    other = shutil.copy(weights, tmp_path)
    Path(other).write_bytes(bytes(weights.stat().st_size))
    with pytest.raises(ModelError, match="differs from the file at the blob's compilation"):
        Core().import_model(content, "NPU", {"WEIGHTS_PATH": str(other)})


def test_options_export_and_import(classify, tmp_path) -> None:
    path = tmp_path / "one.blob"
    config = EXACT | {"BLOB_PATH": str(path)}
    Core().compile_model(classify.path, "NPU", config | {"EXPORT_BLOB": "YES"})
    assert path.is_file()
    assert_same(Core().compile_model(classify.path, "NPU", {"BLOB_PATH": str(path)}), classify)
    with pytest.raises(OptionError, match=r"INFERENCE_PRECISION_HINT = 'f16' .the blob has 'f32'"):
        Core().import_model(path, "NPU", {"INFERENCE_PRECISION_HINT": "f16"})
    nowhere = {"EXPORT_BLOB": "YES", "BLOB_PATH": str(tmp_path / "no" / "one.blob")}
    with pytest.raises(OptionError, match=r"no folder \S+ exists"):
        Core().compile_model(classify.path, "NPU", nowhere)


def test_the_npus_share_of_several_devices_is_exported(classify, tmp_path) -> None:
    """The export has no graph, so no other device can take over."""
    devices = EXACT | {"NPU_USE_NPUW": "YES", "NPUW_DEVICES": "NPU,CPU"}
    Core().compile_model(classify.path, "NPU", devices).export_model(tmp_path / "one.blob")
    model = Core().import_model(tmp_path / "one.blob", "NPU", {"MODEL_PTR": classify.path})
    assert_same(model, classify)
    assert str(tmp_path).encode() not in (tmp_path / "one.blob").read_bytes()


def test_a_model_that_refers_to_local_files_is_not_exported(compile_static, graphs) -> None:
    model = compile_static(graphs["classifier"](), NPU_USE_NPUW="YES", NPUW_DEVICES="CPU")
    with pytest.raises(OptionError, match="can be neither exported nor imported"):
        model.compiled.export_model()


def test_an_encrypted_blob_needs_its_callbacks(compile_static, graphs) -> None:
    def flip(content: bytes) -> bytes:
        return bytes(byte ^ 0x5A for byte in content)

    secret = {"CACHE_ENCRYPTION_CALLBACKS": (flip, flip)}
    model = compile_static(graphs["recurrent"](), CACHE_MODE="OPTIMIZE_SPEED", **secret)
    content = model.compiled.export_model()
    assert b"memory" not in content, "the variable's name is encrypted, too"
    assert_same(Core().import_model(content, "NPU", secret), model)
    with pytest.raises(BlobError, match="it is encrypted; set CACHE_ENCRYPTION_CALLBACKS"):
        Core().import_model(content, "NPU")


@pytest.fixture(scope="module", params=["NO", "YES"], ids=["as it is", "through NPUW"])
def blob(compile_static, graphs, request) -> bytes:
    options = {"CACHE_MODE": "OPTIMIZE_SPEED", "NPU_USE_NPUW": request.param}
    return compile_static(graphs["recurrent"](), **options).compiled.export_model()


@settings(max_examples=18, deadline=None)
@given(st.data())
def test_damaged_blobs_are_rejected(blob: bytes, data: st.DataObject) -> None:
    content = bytearray(blob)
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(blob) - 1)) :]
    else:
        content[data.draw(st.integers(0, len(blob) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises((BlobError, BlobVersionError)):
        Core().import_model(bytes(content), "NPU")


def test_a_language_models_blob_is_not_a_static_models(compile_static, graphs) -> None:
    options = {"CACHE_MODE": "OPTIMIZE_SPEED", "NPU_USE_NPUW": "YES"}
    blob = compile_static(graphs["recurrent"](), **options).compiled.export_model()
    as_llm = blob.replace(b"STATIC", b"LLMCMO", 1)
    with pytest.raises(NpuwError, match="its programs are program, initial values"):
        Core().import_model(as_llm, "NPU")
