"""Models with open dimensions that are compiled for given shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.npuw.kinds.static.batches import EXACT, items, scorer

from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter
from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import Core, StaticCompiledModel
from npuw_layer.errors import ModelError, OptionError

STATIC = EXACT | {"NPU_USE_NPUW": "NO"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """IR of a model of any batch, which would run item by item."""
    return write(scorer(-1), tmp_path / "scorer.xml")


def write(model: Model, path: Path) -> Path:
    write_ir(model, path)
    return path


@pytest.mark.parametrize("count", [1, 5])
def test_results_equal_the_interpreters(path: Path, count: int) -> None:
    inputs = items(count)
    shapes = {name: values.shape for name, values in inputs.items()}
    compiled = Core().compile_reshaped(path, "NPU", STATIC, shapes)
    assert isinstance(compiled, StaticCompiledModel)
    found = compiled.create_infer_request().infer(inputs)
    expected = Interpreter(scorer(count)).run(inputs)
    np.testing.assert_allclose(found["scores"], expected["scores"], 1e-4, 1e-5)


def test_each_shape_is_cached(path: Path, tmp_path: Path) -> None:
    config = STATIC | {"CACHE_DIR": str(tmp_path / "cache")}
    blobs: list[int] = []
    for count in (2, 3, np.int64(2)):
        inputs = items(int(count))
        shapes = {name: [count, *values.shape[1:]] for name, values in inputs.items()}
        request = Core().compile_reshaped(path, "NPU", config, shapes).create_infer_request()
        assert request.infer(inputs)["scores"].shape[0] == count
        blobs.append(len([*(tmp_path / "cache").glob("*.blob")]))
    assert blobs[0] < blobs[1] == blobs[2]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"x": [1]}, "no input 'x'"),
        ({"ids": [3]}, "does not accept the shapes"),
        ({"ids": [2, 3]}, "gain"),
        ({"ids": [10**12, 3]}, "does not accept the shapes"),
        ({"ids": 3}, "the shapes {'ids': 3} are not integers by input name"),
        ({"ids": [2.5, 3]}, "are not integers by input name"),
        ([("ids", [2, 3])], "are not integers by input name"),
    ],
)
def test_shapes_that_do_not_fit_are_rejected(path: Path, shapes: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Core().compile_reshaped(path, "NPU", STATIC, shapes)


def test_blobs_and_language_models_are_rejected(path: Path, llama_8m_ir: Path) -> None:
    for model, config in ((path, {"BLOB_PATH": "scorer.blob"}), (llama_8m_ir, {})):
        with pytest.raises(OptionError, match=r"only static models .* are reshaped"):
            Core().compile_reshaped(model, "NPU", config, {})
