"""Where the LM head cannot be told from the rest, models keep it, and all else is as before."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from compiler_layer.builder import GraphBuilder
from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import Core
from npuw_layer.errors import NoHead
from npuw_layer.llm.head import cut_head
from npuw_layer.read_model import read_model

IDS = np.random.default_rng(2).integers(0, 97, 60).tolist()


@pytest.fixture(scope="module")
def hidden(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model as an IR whose logits are transposed there and back."""
    model = read_model(tiny)
    (port,) = model.outputs
    g = GraphBuilder(model)
    there = g.transpose(port.value, 0, 2, 1)
    model.set_outputs([(port.name, g.transpose(there, 0, 2, 1))])
    path = tmp_path_factory.mktemp("hidden_head") / "openvino_model.xml"
    write_ir(model, path)
    return path


def test_such_a_head_is_not_found(hidden: Path) -> None:
    with pytest.raises(NoHead, match="not the product of a hidden state"):
        cut_head(read_model(hidden), 1)


@pytest.mark.parametrize("shared", ["YES", "NO"])
def test_a_model_whose_head_is_not_found_says_the_same(
    talks, tiny: Path, hidden: Path, shared: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        talk, expected = talks(hidden, NPUW_LLM_SHARED_HEAD=shared), talks(tiny)
    for ids in (IDS[:40], [1], [2], IDS[40:]):
        found, same = talk.tell(ids), expected.tell(ids)
        assert np.abs(found - same).max() <= 1e-5 * np.abs(same).max()
    assert ("each model keeps what makes them" in caplog.text) == (shared == "YES")
    stages = talk.request._compiled.plan.stages
    assert not any(stage.name.startswith("lm_head") for stage in stages)


def test_it_is_exported_and_imported(hidden: Path, tmp_path: Path) -> None:
    compiled = Core().compile_model(hidden, "NPU", {"NPUW_LLM_MAX_PROMPT_LEN": 64})
    assert compiled.get_property("NPUW_LLM_SHARED_HEAD") is False, "what it is, not what was asked"
    compiled.export_model(tmp_path / "hidden.blob")
    options = {"WEIGHTS_PATH": str(hidden.with_suffix(".bin"))}
    imported = Core().import_model(tmp_path / "hidden.blob", "NPU", options)
    inputs = {
        "input_ids": np.array([IDS[:9]]),
        "attention_mask": np.ones((1, 9), np.int64),
        "position_ids": np.arange(9)[None],
    }
    found = [model.create_infer_request().infer(inputs) for model in (compiled, imported)]
    assert np.array_equal(found[0]["logits"], found[1]["logits"])
