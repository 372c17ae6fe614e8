"""A folder of each family computes the results of transformers, in f32."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler_layer.dialects.ov.types import shape_of
from compiler_layer.frontends.huggingface import read_folder
from compiler_layer.frontends.huggingface.families import FAMILIES
from compiler_layer.pipeline import Options, lower_graph
from compiler_layer.reference.interpreter import Interpreter

GOLDENS = Path(__file__).resolve().parents[3] / "goldens"
MODELS = sorted(path.stem.removeprefix("families_") for path in GOLDENS.glob("families_*.npz"))

FolderOf = Callable[..., Path]


@pytest.fixture(params=MODELS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def goldens(name: str) -> Mapping[str, np.ndarray]:
    return dict(np.load(GOLDENS / f"families_{name}.npz"))


@pytest.fixture
def config(families: Any, name: str) -> Mapping[str, Any]:
    return families.descriptions()[name]["config"]


@pytest.fixture
def interpreter(folder_of: FolderOf, name: str) -> Interpreter:
    model = read_folder(folder_of(name))
    model.verify()
    return Interpreter(model)


def ask(interpreter: Interpreter, ids: np.ndarray, past: int = 0) -> np.ndarray:
    """Return the logits of all new tokens after ``past`` others, f32 [M, V]."""
    count = ids.shape[1]
    mask, positions = np.ones((1, past + count), np.int64), np.arange(past, past + count)
    return ask_masked(interpreter, ids, mask, positions[None])


def ask_masked(
    interpreter: Interpreter, ids: np.ndarray, mask: np.ndarray, positions: np.ndarray
) -> np.ndarray:
    inputs = {"input_ids": ids, "attention_mask": mask, "position_ids": positions}
    return interpreter.run(inputs | {"beam_idx": np.zeros(1, np.int32)})["logits"][0]


def check(found: np.ndarray, expected: np.ndarray) -> None:
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


def test_every_family_has_a_model(families: Any) -> None:
    described = families.descriptions()
    assert sorted(described) == MODELS
    assert {each["config"]["model_type"] for each in described.values()} == set(FAMILIES)


@pytest.mark.matrix
def test_logits_of_prompts_are_those_of_transformers(
    families: Any,
    config: Mapping[str, Any],
    goldens: Mapping[str, np.ndarray],
    interpreter: Interpreter,
) -> None:
    for length in (1, 7, 100):
        interpreter.reset()
        logits = ask(interpreter, families.prompt(config, length))
        check(logits[families.recorded_rows(length)], goldens[f"logits_{length}"])


@pytest.mark.matrix
def test_a_prompt_in_chunks_has_the_same_logits(
    families: Any,
    config: Mapping[str, Any],
    goldens: Mapping[str, np.ndarray],
    interpreter: Interpreter,
) -> None:
    ids = families.prompt(config, 100)
    bounds = (0, 1, 10, 50, 51, 100)
    chunks = [ask(interpreter, ids[:, begin:end], begin) for begin, end in pairwise(bounds)]
    check(np.concatenate(chunks)[families.recorded_rows(100)], goldens["logits_100"])


@pytest.mark.matrix
def test_left_padding_does_not_change_the_logits_of_other_tokens(
    families: Any,
    config: Mapping[str, Any],
    goldens: Mapping[str, np.ndarray],
    interpreter: Interpreter,
) -> None:
    ids, mask, positions = families.padded_prompt(config)
    rows = families.recorded_rows(families.PADDED)
    rows = rows[rows >= families.PADDING]
    check(ask_masked(interpreter, ids, mask, positions)[rows], goldens["logits_padded"])
    interpreter.reset()
    first = ask_masked(interpreter, ids[:, :30], mask[:, :30], positions[:, :30])
    rest = ask_masked(interpreter, ids[:, 30:], mask, positions[:, 30:])
    check(np.concatenate([first, rest])[rows], goldens["logits_padded"])


@pytest.mark.matrix
def test_greedy_tokens_are_those_of_transformers(
    families: Any,
    config: Mapping[str, Any],
    goldens: Mapping[str, np.ndarray],
    interpreter: Interpreter,
) -> None:
    ids, past, greedy = families.prompt(config, 7), 0, []
    for _ in range(families.GREEDY_TOKENS):
        logits = ask(interpreter, ids, past)
        past += ids.shape[1]
        greedy.append(int(logits[-1].argmax()))
        ids = np.array([greedy[-1:]])
    assert greedy == goldens["greedy"].tolist()


@pytest.mark.matrix
def test_caches_are_the_exporters_variables(
    config: Mapping[str, Any], interpreter: Interpreter, families: Any
) -> None:
    ask(interpreter, families.prompt(config, 3))
    layers = config.get("num_hidden_layers") or config["n_layer"]
    names = [
        f"past_key_values.{layer}.{kind}present.{layer}.{kind}"
        for layer in range(layers)
        for kind in ("key", "value")
    ]
    assert sorted(interpreter.variables) == sorted(names)
    assert {value.shape[2] for value in interpreter.variables.values()} == {3}


@pytest.mark.matrix
def test_passes_recognise_norms_positions_and_attention(
    folder_of: FolderOf, config: Mapping[str, Any], name: str
) -> None:
    model = read_folder(folder_of(name))
    shapes = {"input_ids": (1, 8), "attention_mask": (1, 12), "position_ids": (1, 8)}
    for variable in model.variables():
        assert variable.read is not None
        _, heads, _, width = shape_of(variable.read.output)
        shapes[variable.name] = (1, heads, 4, width)
    model.set_input_shapes(shapes | {"beam_idx": (1,)})
    lower_graph(model, Options(precision="f32"))
    counts = Counter(op.name for op in model.body.ops)
    layers = config.get("num_hidden_layers") or config["n_layer"]
    assert not {"ov.Power", "ov.ReduceMean", "ov.Sqrt"} & counts.keys()
    rotated = 0 if name == "gpt2" else sum(config.get("no_rope_layers", [1] * layers))
    assert counts["ov.RoPE"] == 2 * rotated
    # A cap on scores cannot be expressed in one op.
    assert counts["ov.ScaledDotProductAttention"] == (0 if name == "gemma2" else layers)
    assert counts["ov.RMS"] or counts["ov.MVN"] == 2 * layers + 1
