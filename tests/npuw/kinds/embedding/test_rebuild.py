"""Rebuild of decoders without a KV cache, which only causal decoders allow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.shape import Range
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter
from npuw_layer.errors import NotCausal
from npuw_layer.kinds.embedding.attends import is_causal
from npuw_layer.kinds.embedding.rebuild import rebuild
from npuw_layer.storage.read_model import read_model


def attentions(model: Model) -> list[ScaledDotProductAttention]:
    return [op for op in model.body.ops if isinstance(op, ScaledDotProductAttention)]


@pytest.mark.parametrize(
    ("name", "causal"),
    [
        ("qwen3", [True] * 5),
        ("llama", [True] * 2),
        ("qwen2_windows", [True, False]),
        ("gemma3", [False] * 2),
        ("bert", [False] * 2),
    ],
)
def test_causality_is_found_from_the_masks(
    text_model: Callable[[str], Path], name: str, causal: list[bool]
) -> None:
    model = read_model(text_model(name))
    assert [is_causal(model, op) for op in attentions(model)] == causal


def test_a_rebuilt_model_has_a_variable_for_each_k_and_v(text_model: Callable[[str], Path]) -> None:
    model = read_model(text_model("qwen3"))
    rebuild(model)
    model.verify()
    assert [port.name for port in model.inputs] == ["input_ids", "attention_mask", "position_ids"]
    assert [port.name for port in model.outputs] == ["npuw_output_embed"]
    names = [variable.name for variable in model.variables()]
    assert len(names) == 2 * len(attentions(model)) == 10
    assert names[0] == "past_key_values.0.keypresent.0.key"
    ranges = [op for op in model.body.ops if isinstance(op, Range)]
    assert len(ranges) == 2, "only the mask's rows are counted; positions are an input"


@pytest.fixture(scope="module")
def both(text_model: Callable[[str], Path]) -> Callable[[str], tuple[Interpreter, Interpreter]]:
    """Return a function that interprets a model as exported, and as rebuilt."""
    known: dict[str, tuple[Interpreter, Interpreter]] = {}

    def give(name: str) -> tuple[Interpreter, Interpreter]:
        if name not in known:
            model = read_model(text_model(name))
            exported = Interpreter(model.clone())
            rebuild(model)
            known[name] = exported, Interpreter(model)
        known[name][1].reset()
        return known[name]

    return give


@pytest.mark.matrix
@settings(max_examples=6, deadline=None)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4), seed=st.integers(0, 99))
@pytest.mark.parametrize("name", ["qwen3", "llama"])
def test_any_split_into_chunks_equals_the_complete_text(
    both: Callable[[str], tuple[Interpreter, Interpreter]], name: str, sizes: list[int], seed: int
) -> None:
    whole, pieces = both(name)
    n = sum(sizes)
    ids = np.random.default_rng(seed).integers(10, 512, (1, n))
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    given["position_ids"] = np.arange(n)[None]
    expected = whole.run(given)["last_hidden_state"]
    done, found = 0, []
    for size in sizes:
        part = {name: array[:, done : done + size] for name, array in given.items()}
        part["attention_mask"] = given["attention_mask"][:, : done + size]
        found.append(pieces.run(part)["npuw_output_embed"])
        done += size
    np.testing.assert_allclose(np.concatenate(found, 1), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("qwen2_windows", "the attention is not causal"),
        ("gemma3", "the attention is not causal"),
        ("bert", "token_type_ids"),
        ("xlmr", "logits"),
    ],
)
def test_models_that_cannot_be_read_in_chunks_are_rejected_with_the_reason(
    text_model: Callable[[str], Path], name: str, why: str
) -> None:
    with pytest.raises(NotCausal, match=why):
        rebuild(read_model(text_model(name)))
