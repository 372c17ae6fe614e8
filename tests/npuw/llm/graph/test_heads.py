"""Search for LM heads; models keep heads that cannot be identified."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.npuw.conftest import VOCABULARY, Talks
from tests.npuw.layouts import by_tokens
from tests.npuw.splitting import split
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.activation import Tanh
from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.writers.openvino_ir import write_ir
from npuw_layer import Core
from npuw_layer.errors import NoHead
from npuw_layer.llm.graph.head_alone import HeadAlone
from npuw_layer.llm.graph.last_token_head import LastTokenHead
from npuw_layer.llm.graph.pipeline import run_passes
from npuw_layer.storage.read_model import read_model

IDS = np.random.default_rng(2).integers(0, 97, 60).tolist()


Ending = Callable[[GraphBuilder, SSAValue], SSAValue]


def ended(tiny: Path, folder: Path, ending: Ending) -> Path:
    """Write the tiny model with an ending that changes its logits."""
    model = read_model(tiny)
    (port,) = model.outputs
    model.set_outputs([(port.name, ending(GraphBuilder(model), port.value))])
    path = folder / "openvino_model.xml"
    write_ir(model, path)
    return path


def reshaped(g: GraphBuilder, logits: SSAValue) -> SSAValue:
    """Return the same logits after a reshape, which hides the head."""
    return g.reshape(logits, 0, 0, VOCABULARY)


def transposed_twice(g: GraphBuilder, logits: SSAValue) -> SSAValue:
    """Return the same logits after two transpositions that cancel."""
    return g.transpose(g.transpose(logits, 0, 2, 1), 0, 2, 1)


def softened(g: GraphBuilder, logits: SSAValue) -> SSAValue:
    """Return ChatGLM's transposed logits with Gemma's cap."""
    return g.op(Tanh, by_tokens(g, logits))


@pytest.fixture(scope="module")
def hidden(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the tiny model as an IR whose head cannot be identified."""
    return ended(tiny, tmp_path_factory.mktemp("hidden_head"), reshaped)


def test_a_hidden_head_is_not_found(hidden: Path) -> None:
    with pytest.raises(NoHead, match="not a matmul of hidden states"):
        run_passes(read_model(hidden), [HeadAlone(1)])


def test_a_head_whose_logits_have_the_vocabulary_before_tokens_is_not_found(tiny: Path) -> None:
    model = read_model(tiny)
    (port,) = model.outputs
    model.set_outputs([(port.name, GraphBuilder(model).transpose(port.value, 0, 2, 1))])
    with pytest.raises(NoHead):
        run_passes(model, [HeadAlone(1)])


@pytest.mark.matrix
@pytest.mark.parametrize("ending", [transposed_twice, by_tokens, softened])
@pytest.mark.parametrize("shared", ["YES", "NO"])
def test_a_head_before_a_transposition_is_found(
    talks: Talks, tiny: Path, tmp_path: Path, ending: Ending, shared: str
) -> None:
    path = ended(tiny, tmp_path, ending)
    talk, expected = talks(path, NPUW_LLM_SHARED_HEAD=shared), talks(tiny)
    for ids in (IDS[:40], [1], [2], IDS[40:]):
        found, same = talk.tell(ids), expected.tell(ids)
        same = np.tanh(same) if ending is softened else same
        assert np.abs(found - same).max() <= 1e-5 * np.abs(same).max()
    stages = talk.request._compiled.plan.stages
    heads = [stage for stage in stages if stage.name.startswith("lm_head")]
    assert bool(heads) == (shared == "YES")


@pytest.mark.parametrize("ending", [by_tokens, transposed_twice])
def test_a_head_before_a_transposition_computes_one_token_of_a_prompt(
    tiny: Path, tmp_path: Path, ending: Ending
) -> None:
    """Models with their own heads, too: a single row is transposed afterwards."""
    model = split(read_model(ended(tiny, tmp_path, ending)), 16, 16)
    run_passes(model, [LastTokenHead(16)])
    (logits,) = [port.value for port in model.outputs]
    assert shape_of(logits)[1:] == (1, VOCABULARY)


@pytest.mark.matrix
@pytest.mark.parametrize("shared", ["YES", "NO"])
def test_a_model_with_a_hidden_head_gives_the_same_logits(
    talks: Talks, tiny: Path, hidden: Path, shared: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        talk = talks(hidden, NPUW_LLM_SHARED_HEAD=shared, CACHE_DIR="")
        expected = talks(tiny)
    for ids in (IDS[:40], [1], [2], IDS[40:]):
        found, same = talk.tell(ids), expected.tell(ids)
        assert np.abs(found - same).max() <= 1e-5 * np.abs(same).max()
    assert ("each model keeps its own head" in caplog.text) == (shared == "YES")
    stages = talk.request._compiled.plan.stages
    assert not any(stage.name.startswith("lm_head") for stage in stages)


def test_a_model_with_a_hidden_head_is_exported_and_imported(hidden: Path, tmp_path: Path) -> None:
    compiled = Core().compile_model(hidden, "NPU", {"NPUW_LLM_MAX_PROMPT_LEN": 64})
    assert compiled.get_property("NPUW_LLM_SHARED_HEAD") is False, "the effective value"
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
