"""Static graphs that read a text whole, unaffected by padding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from compiler_layer.reference.interpreter import Interpreter
from npuw_layer.errors import ModelError
from npuw_layer.kinds.embedding.reading import PADDING
from npuw_layer.kinds.embedding.whole import whole_graph
from npuw_layer.storage.read_model import read_model


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["bert", "xlmr", "qwen3_score", "qwen2_windows", "gemma3"])
@pytest.mark.parametrize("n", [1, 9, 16])
def test_padding_has_the_models_padding_id(
    text_model: Callable[[str], Path], name: str, n: int
) -> None:
    """XLM-R counts positions, and classifiers find the last token, by comparison with this id."""
    model = read_model(text_model(name))
    ids = np.random.default_rng(n).integers(10, 512, (1, n))
    rows = {port.name: np.zeros_like(ids) for port in model.inputs}
    rows |= {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    rows["position_ids"] = np.arange(n)[None]
    given = {port.name: rows[port.name] for port in model.inputs}
    (expected,) = Interpreter(model).run(given).values()
    padding = {"input_ids": PADDING}
    padded = {
        key: np.pad(row, ((0, 0), (0, 16 - n)), constant_values=padding.get(key, 0))
        for key, row in given.items()
    }
    (found,) = Interpreter(whole_graph(model, 16)).run(padded).values()
    found = found[:, :n] if found.ndim > 2 else found
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_model_that_ignores_its_mask_is_rejected(text_model: Callable[[str], Path]) -> None:
    model = read_model(text_model("bert"))
    mask = next(port.value for port in model.inputs if port.name == "attention_mask")
    ids = next(port.value for port in model.inputs if port.name == "token_type_ids")
    mask.replace_all_uses_with(ids)
    with pytest.raises(ModelError, match="does not read attention_mask"):
        whole_graph(model, 16)


def test_a_model_without_text_inputs_is_rejected(text_model: Callable[[str], Path]) -> None:
    model = read_model(text_model("bert"))
    model.set_inputs(["input_ids", "pixel_values", "token_type_ids"])
    with pytest.raises(ModelError, match=r"not a model that reads a text.*pixel_values"):
        whole_graph(model, 16)
