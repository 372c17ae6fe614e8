"""Mixtures are found in static graphs, and separate experts compute the same results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler_layer.model import Model, context
from compiler_layer.partition.compiled import OUTPUT, ROWS, WEIGHT
from compiler_layer.partition.mixtures.expert import expert_model
from compiler_layer.partition.mixtures.find import find_mixtures
from compiler_layer.passes.dense_experts import DenseExperts
from compiler_layer.passes.route_experts import RouteExperts
from compiler_layer.reference.interpreter import Interpreter

PASSES = Path(__file__).parents[2] / "passes"
STACKED = (PASSES / "route_experts.mlir").read_text()


def chained() -> Model:
    """Build a chained mixture: two of three experts for four tokens; one expert has no weight."""
    model = Model.parse((PASSES / "dense_experts.mlir").read_text())
    DenseExperts().apply(context(), model.module)
    return model


MODELS = {"chained": chained, "stacked": lambda: Model.parse(STACKED)}


def numbers(model: Model, seed: int) -> dict[str, np.ndarray]:
    """Return random inputs."""
    draw = np.random.default_rng(seed)
    return {
        port.name: draw.standard_normal(port.type.get_shape()).astype(np.float32)
        for port in model.inputs
    }


@pytest.mark.matrix
@pytest.mark.parametrize("kind", MODELS)
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 999))
def test_the_experts_rows_sum_to_the_mixture(kind: str, seed: int) -> None:
    model = MODELS[kind]()
    (mixture,) = find_mixtures(model)
    given_inputs = numbers(model, seed)
    (whole,) = Interpreter(model).run(given_inputs).values()
    watched = (("ids", mixture.ids), ("weights", mixture.weights), ("rows", mixture.rows))
    model.set_outputs(watched)
    seen = Interpreter(model).run(given_inputs)
    rows = seen["rows"].reshape(mixture.tokens, -1)
    weights = seen["weights"].reshape(seen["ids"].shape)
    total = np.zeros_like(whole)
    for expert in mixture.terms:
        tokens, slots = np.nonzero(seen["ids"] == expert)
        for token, slot in zip(tokens, slots, strict=True):
            one = expert_model(mixture, expert, 1)
            one.verify()
            fed = {ROWS: rows[token : token + 1], WEIGHT: weights[token : token + 1, slot, None]}
            total[token] += Interpreter(one).run(fed)[OUTPUT][0]
    assert np.abs(total - whole).max() <= 1e-5 * max(1, np.abs(whole).max())


@pytest.mark.parametrize("kind", MODELS)
def test_only_the_sum_of_a_mixture_is_used_outside(kind: str) -> None:
    (mixture,) = find_mixtures(MODELS[kind]())
    results = {result for op in mixture.ops for result in op.results}
    outside = {
        result for result in results for use in result.uses if use.operation not in mixture.ops
    }
    assert outside == {mixture.output}


CHANGES = {
    "weights put over others": ('reduction = "none"', 'reduction = "sum"'),
    "scores that nobody may have": ("[0.0, 0.0, 0.0]", "[0.0, 1.0, 0.0]"),
    "a maximum": ("ov.ReduceSum(%weighted", "ov.ReduceMax(%weighted"),
    "rows that meet": ("ov.Abs(%h)", "ov.Softmax(%h) {axis = 1 : i64}"),
    "weights of the token": (
        "ov.Multiply(%y, %column) : (tensor<3x1x2xf32>, tensor<3x1x1xf32>)",
        "ov.Multiply(%y, %y) : (tensor<3x1x2xf32>, tensor<3x1x2xf32>)",
    ),
    "ids that may be twice": (
        "ov.ScatterElementsUpdate(%none, %ids,",
        "ov.ScatterElementsUpdate(%none, %same,",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_graph_that_is_not_a_mixture_is_not_changed(change: str) -> None:
    old, new = CHANGES[change]
    assert old in STACKED
    same = (
        "  %same = ov.BitwiseAnd(%ids, %ids) : (tensor<1x2xi64>, tensor<1x2xi64>) -> "
        "tensor<1x2xi64>\n  %copies ="
    )
    text = STACKED.replace(old, new).replace("  %copies =", same)
    model = Model.parse(text)
    assert find_mixtures(model) == []
    RouteExperts().apply(context(), model.module)
    assert "ov.Gather" not in model.text()


def test_a_sum_with_uses_in_between_is_not_a_mixture() -> None:
    model = chained()
    (mixture,) = find_mixtures(model)
    first, last = (op for op in model.body.ops if op.name == "ov.Add" and op in mixture.ops)
    model.set_outputs([("y", last.results[0]), ("half", first.results[0])])
    assert find_mixtures(model) == []


def test_with_as_many_choices_as_experts_all_weights_are_read_once() -> None:
    """Eight choices among three experts; unstacked experts stay unchanged, too."""
    model = chained()
    before = model.text()
    RouteExperts().apply(context(), model.module)
    assert model.text() == before
