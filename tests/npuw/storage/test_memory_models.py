"""Models in memory: their text and weights were never files."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDENS
from tests.npuw.conftest import SMALL, ask
from tests.npuw.kinds.static.conftest import ROWS, WIDTH, classifier

from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import Core
from npuw_layer.errors import ModelError, TensorError
from npuw_layer.storage.memory_model import MemoryModel

IDS = np.array([[5, 9, 13, 7, 21]])


@pytest.fixture(scope="module")
def ir(restored: Callable[[Path, str], Path]) -> Path:
    return restored(GOLDENS / "exported", "llama_fp16")


def in_memory(core: Core, ir: Path) -> MemoryModel:
    return core.read_model(ir.read_text(), np.fromfile(ir.with_suffix(".bin"), np.uint8))


def logits(compiled: Any) -> np.ndarray:
    return ask(compiled.create_infer_request(), IDS)


def test_a_model_in_memory_uses_the_programs_cached_for_its_files(ir: Path, tmp_path: Path) -> None:
    options = SMALL | {"CACHE_DIR": str(tmp_path)}
    core = Core()
    expected = logits(core.compile_model(ir, "NPU", options))
    request = core.compile_model(in_memory(core, ir), "NPU", options).create_infer_request()
    assert np.array_equal(ask(request, IDS), expected)
    assert request.execution_report()["blobs"].startswith("4 loaded from cache")
    names = {file.name for file in tmp_path.iterdir()}
    core.compile_model(in_memory(core, ir), "NPU", options)
    assert {file.name for file in tmp_path.iterdir()} == names


def test_a_model_in_memory_lives_as_long_as_its_last_request(ir: Path) -> None:
    core = Core()
    model = in_memory(core, ir)
    folder = model.path.parent
    assert all(file.is_symlink() for file in folder.iterdir()), "the disk has no content"
    compiled = core.compile_model(model, "NPU", SMALL)
    request = compiled.create_infer_request()
    del model, compiled
    gc.collect()
    assert folder.is_dir()
    ask(request, IDS)
    assert "memfd:openvino_model" in Path("/proc/self/maps").read_text()
    del request
    gc.collect()
    assert not folder.exists()
    assert "memfd:openvino_model" not in Path("/proc/self/maps").read_text()


@pytest.mark.matrix
@pytest.mark.parametrize(
    "options",
    [
        {"NPUW_WEIGHTS_BANK": "memory-models"},
        {"NPUW_DEVICES": "CPU"},
        {"NPUW_LLM_PREFILL_CHUNK_SIZE": 16},
    ],
    ids=["bank", "interpreter", "chunks"],
)
def test_options_have_the_same_effect_for_a_model_in_memory(ir: Path, options) -> None:
    core = Core()
    expected = logits(core.compile_model(ir, "NPU", SMALL | options))
    found = logits(core.compile_model(in_memory(core, ir), "NPU", SMALL | options))
    assert np.array_equal(found, expected)


def test_weights_in_memory_are_offloaded(restored: Callable[[Path, str], Path]) -> None:
    ir, core = restored(GOLDENS / "exported", "llama_deep_fp16"), Core()
    expected = logits(core.compile_model(ir, "NPU", SMALL))
    options = SMALL | {"NPUW_WEIGHTS_OFFLOAD": "ASYNC"}
    found = logits(core.compile_model(in_memory(core, ir), "NPU", options))
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def test_a_model_in_memory_is_exported_and_saved(ir: Path, tmp_path: Path) -> None:
    core = Core()
    export = {"EXPORT_BLOB": True, "BLOB_PATH": str(tmp_path / "model.blob")}
    request = core.compile_model(in_memory(core, ir), "NPU", SMALL | export).create_infer_request()
    ask(request, IDS)
    request.save_state(tmp_path / "state")
    blob = {"BLOB_PATH": str(tmp_path / "model.blob")}
    imported = core.compile_model(in_memory(core, ir), "NPU", blob)
    other = imported.create_infer_request()
    other.load_state(tmp_path / "state")
    assert np.array_equal(ask(other, IDS[:, :1], 5), ask(request, IDS[:, :1], 5))


def test_a_static_model_in_memory_runs(tmp_path: Path) -> None:
    write_ir(classifier(), tmp_path / "model.xml")
    core = Core()
    draw = np.random.default_rng(4).standard_normal((ROWS, WIDTH)).astype(np.float32)
    inputs = {"ids": np.arange(ROWS), "gain": draw}
    model = in_memory(core, tmp_path / "model.xml")
    request = core.compile_model(model, "NPU", {}).create_infer_request()
    del model
    gc.collect()
    expected = core.compile_model(tmp_path / "model.xml", "NPU", {}).create_infer_request()
    for name, values in expected.infer(inputs).items():
        assert np.array_equal(request.infer(inputs)[name], values)


def test_adapters_are_inserted_into_a_model_in_memory(ir: Path) -> None:
    core = Core()
    model = in_memory(core, ir)
    assert core.adaptable_matmuls(model) == core.adaptable_matmuls(ir)


def test_broken_models_in_memory_are_rejected(ir: Path) -> None:
    core = Core()
    weights = np.fromfile(ir.with_suffix(".bin"), np.uint8)
    with pytest.raises(ModelError, match=r"openvino_model\.xml: is not an OpenVINO IR"):
        core.compile_model(core.read_model("<net", weights), "NPU", SMALL)
    with pytest.raises(ModelError, match=r"has 100 bytes; the constant is at"):
        core.compile_model(core.read_model(ir.read_bytes(), weights[:100]), "NPU", SMALL)
    with pytest.raises(TensorError):
        core.read_model(ir.read_text(), "weights")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="PosixPath is not the text of a model"):
        core.read_model(ir, weights)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="surrogates not allowed; pass the text as bytes"):
        core.read_model("\ud800", weights)


def test_a_model_in_memory_needs_a_folder_for_its_links(ir: Path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    with pytest.raises(ModelError, match=r"in memory: /nonexistent/.*: No such file"):
        in_memory(Core(), ir)
