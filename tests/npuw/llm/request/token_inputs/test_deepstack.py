"""Image features become rows of all tokens, for every supported addition; others are rejected."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise, logic
from compiler_layer.dialects.ov.gather import GatherND
from compiler_layer.dialects.ov.indexing import NonZero
from compiler_layer.dialects.ov.op import int_attr
from compiler_layer.dialects.ov.scatter import ScatterNDUpdate
from compiler_layer.dialects.ov.types import shape_of, tensor
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import Interpreter
from npuw_layer.errors import ModelError
from npuw_layer.llm.graph.pipeline import run_passes
from npuw_layer.llm.plan.stages import Stage, StageKind
from npuw_layer.options import parse_options
from npuw_layer.storage.read_model import read_model
from npuw_layer.traits.images.deepstack import SpreadVisualRows
from npuw_layer.traits.images.graph import SettleLayers, passes
from npuw_layer.traits.trees.graph import SettleStates

EMBEDS, MARKS = "deepstack_visual_embeds", "visual_pos_masks"
Use = Callable[[GraphBuilder, SSAValue, SSAValue, SSAValue], SSAValue]


def graph(use: Use, embeds: str = "f32", marks: str = "boolean", dims=(-1, -1, 4)) -> Model:
    """Build a graph that uses hidden states, features and mask."""
    model, (hidden, features, mask) = Model.build(
        [
            ("inputs_embeds", tensor("f32", (-1, -1, 4))),
            (EMBEDS, tensor(embeds, dims)),
            (MARKS, tensor(marks, (-1, -1))),
        ]
    )
    model.set_outputs([("y", use(GraphBuilder(model), hidden, features, mask))])
    return model


def level(g: GraphBuilder, features: SSAValue, number: int) -> SSAValue:
    return g.gather(features, g.scalar(number), 0)


def places(g: GraphBuilder, mask: SSAValue) -> SSAValue:
    return g.transpose(g.op(NonZero, mask, output_type=StringAttr("i64")), 1, 0)


def picked(g: GraphBuilder, hidden: SSAValue, at: SSAValue) -> SSAValue:
    return g.op(GatherND, hidden, at, batch_dims=int_attr(0))


def put(g: GraphBuilder, hidden: SSAValue, at: SSAValue, rows: SSAValue) -> SSAValue:
    return g.op(ScatterNDUpdate, hidden, at, rows, reduction=StringAttr("none"))


def add(g: GraphBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    return g.op(elementwise.Add, a, b)


def numbers(g: GraphBuilder, mask: SSAValue) -> SSAValue:
    return g.unsqueeze(g.convert(mask, "f32"), 2)


def scattered(g, hidden, features, mask) -> SSAValue:
    for number in (0, 1):
        at = places(g, mask)
        rows = add(g, level(g, features, number), picked(g, hidden, at))
        hidden = put(g, hidden, at, rows)
    return hidden


def test_a_row_of_zeros_adds_nothing() -> None:
    model = graph(scattered)
    run_passes(model, [SpreadVisualRows(5)])
    assert {port.name: shape_of(port.value) for port in model.inputs} == {
        "inputs_embeds": (-1, -1, 4),
        EMBEDS: (2, 1, 5, 4),
    }
    draw = np.random.default_rng(2)
    hidden = draw.standard_normal((1, 5, 4)).astype("f4")
    rows = draw.standard_normal((2, 1, 5, 4)).astype("f4")
    rows[:, :, [0, 3]] = 0
    found = Interpreter(model).run({"inputs_embeds": hidden, EMBEDS: rows})["y"]
    assert np.allclose(found, hidden + rows.sum(0))
    assert np.array_equal(found[:, [0, 3]], hidden[:, [0, 3]])


@pytest.mark.parametrize("name", ["qwen3_vl", "qwen3_vl_gathered"])
def test_exported_additions_become_one_sum_per_level(models, name: str) -> None:
    model = read_model(models(name).path)
    before = [op.name for op in model.body.ops]
    run_passes(model, [SpreadVisualRows(16)])
    after = [op.name for op in model.body.ops]
    assert {"ov.NonZero", "ov.CumSum"} & {*before}
    assert not {"ov.NonZero", "ov.CumSum", "ov.GatherND"} & {*after}
    assert before.count("ov.ScatterNDUpdate") - after.count("ov.ScatterNDUpdate") == (
        6 if name == "qwen3_vl" else 0
    ), "PyTorch assigns the scattered result again, element by element"
    (port,) = (port for port in model.inputs if port.name == EMBEDS)
    assert shape_of(port.value) == (3, 1, 16, 96)


def _elsewhere(g, hidden, features, mask) -> SSAValue:
    at, other = places(g, mask), places(g, g.op(logic.LogicalNot, mask))
    return put(g, hidden, other, add(g, picked(g, hidden, at), level(g, features, 0)))


def _times(g, hidden, features, mask) -> SSAValue:
    del mask
    return g.op(elementwise.Multiply, hidden, level(g, features, 0))


def _two_levels(g, hidden, features, mask) -> SSAValue:
    del mask
    return add(g, hidden, add(g, level(g, features, 0), level(g, features, 1)))


def _mask_alone(g, hidden, features, mask) -> SSAValue:
    return add(g, scattered(g, hidden, features, mask), numbers(g, mask))


def _all_levels(g, hidden, features, mask) -> SSAValue:
    del mask
    return add(g, hidden, features)


def _computed_level(g, hidden, features, mask) -> SSAValue:
    del mask
    return add(g, hidden, g.gather(features, g.dim(hidden, 1), 0))


def _picked_alone(g, hidden, features, mask) -> SSAValue:
    del features
    return g.op(elementwise.Abs, picked(g, hidden, places(g, mask)))


@pytest.mark.parametrize(
    "use",
    [
        *(_elsewhere, _times, _two_levels, _mask_alone),
        *(_all_levels, _computed_level, _picked_alone),
    ],
)
def test_unsupported_additions_are_rejected(use: Use) -> None:
    with pytest.raises(ModelError, match="are combined here in an unsupported way to add"):
        run_passes(graph(use), [SpreadVisualRows(5)])


@pytest.mark.parametrize(
    "changed",
    [{"embeds": "f16"}, {"marks": "i64"}, {"dims": (-1, -1, -1)}, {"dims": (-1, 4)}],
)
def test_other_types_and_shapes_are_rejected(changed) -> None:
    with pytest.raises(ModelError, match=r"not f32 \[levels, tokens, width\] and boolean"):
        run_passes(
            graph(lambda g, hidden, features, mask: hidden, **changed), [SpreadVisualRows(5)]
        )


def _second_alone(g, hidden, features, mask) -> SSAValue:
    del mask
    return add(g, hidden, level(g, features, 1))


def _none(g, hidden, features, mask) -> SSAValue:
    del g, features, mask
    return hidden


@pytest.mark.parametrize(
    ("use", "levels", "read"), [(_second_alone, -1, "1"), (_second_alone, 1, "1"), (_none, -1, "")]
)
def test_missing_levels_are_rejected(use: Use, levels: int, read: str) -> None:
    with pytest.raises(ModelError, match=rf"levels \[{read}\] are read"):
        run_passes(graph(use, dims=(levels, -1, 4)), [SpreadVisualRows(5)])


def test_an_unread_level_is_allowed() -> None:
    model = graph(_second_alone, dims=(3, -1, 4))
    run_passes(model, [SpreadVisualRows(5)])
    assert shape_of(model.inputs[1].value) == (3, 1, 5, 4)


def test_a_single_input_is_kept_and_rejected_later() -> None:
    model, (features,) = Model.build([(EMBEDS, tensor("f32", (-1, -1, 4)))])
    model.set_outputs([("y", features)])
    assert not passes(model, Stage(StageKind.PREFILL, 5, 0), parse_options({}))
    assert [port.name for port in model.inputs] == [EMBEDS]


def test_the_number_of_layers_follows_from_the_added_projection() -> None:
    model, (hidden, rows) = Model.build(
        [
            ("inputs_embeds", tensor("f32", (-1, -1, 6, 4))),
            ("per_layer_inputs", tensor("f32", (-1, -1, -1, 4))),
        ]
    )
    model.set_outputs([("y", add(GraphBuilder(model), rows, hidden))])
    run_passes(model, [SettleLayers()])
    assert shape_of(model.inputs[1].value) == (-1, -1, 6, 4)


def test_the_width_of_input_states_follows_from_output_states() -> None:
    model, (embeds, states) = Model.build(
        [
            ("inputs_embeds", tensor("f32", (-1, -1, 4))),
            ("hidden_states", tensor("f32", (-1, -1, -1))),
        ]
    )
    total = add(GraphBuilder(model), states, embeds)
    model.set_outputs([("logits", total), ("last_hidden_state", embeds)])
    run_passes(model, [SettleStates()])
    assert shape_of(model.inputs[1].value) == (-1, -1, 4)
