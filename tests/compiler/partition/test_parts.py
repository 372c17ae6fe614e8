"""A model in parts: they compute the model's results, and equal parts are one function."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir import Operation

from compiler_layer.builder import GraphBuilder
from compiler_layer.compile import compile_function
from compiler_layer.dialects.ov import elementwise, matmul
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.errors import CompilerUsageError
from compiler_layer.files import FileView
from compiler_layer.model import Model
from compiler_layer.partition.compiled import LINK_PREFIX
from compiler_layer.partition.even import even_parts
from compiler_layer.partition.functions import find_functions
from compiler_layer.partition.parts import Part, PartOps, add_enclosed, cut_parts
from compiler_layer.pipeline import Options
from compiler_layer.reference.interpreter import Interpreter

WIDTH, LAYERS = 8, 4
X = np.random.default_rng(3).random((2, WIDTH), np.float32)


def layered(folder: Path, same_bias: bool = False, outputs: bool = False) -> Model:
    """Build LAYERS times x = sin(x · w) + x · w + bias, with separate weights in a file.

    Args:
        folder: the folder of the weights.
        same_bias: True if all layers have the same bias.
        outputs: True to output sin(x · w) of each layer in addition to y, instead of the input x.
    """
    values = np.random.default_rng(7).random((LAYERS, WIDTH, WIDTH)).astype(np.float32)
    (folder / "weights").write_bytes(values.tobytes())
    model, (x,) = Model.build([("x", tensor("f32", X.shape))])
    g = GraphBuilder(model)
    size = WIDTH * WIDTH * 4
    inner = []
    for layer in range(LAYERS):
        view = FileView(str(folder / "weights"), layer * size, size, "f32")
        w = g.add(Constant.of_file(view, "f32", (WIDTH, WIDTH))).output
        bias = g.constant(np.full((1, WIDTH), 0 if same_bias else layer, np.float32))
        h = g.matmul(x, w, False)
        inner.append((f"inner{layer}", g.op(elementwise.Sin, h)))
        h = g.op(elementwise.Add, inner[-1][1], h)
        x = g.op(elementwise.Add, h, bias)
    model.set_outputs([("y", x), *(inner if outputs else [("x", model.inputs[0].value)])])
    return model


def run_parts(parts: list[Part], given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run parts one after the other, each with the results of those before."""
    known = dict(given)
    made: dict[str, np.ndarray] = {}
    for part in parts:
        part.model.verify()
        found = Interpreter(part.model).run({p.name: known[p.name] for p in part.model.inputs})
        made |= {name: value for name, value in found.items() if not name.startswith(LINK_PREFIX)}
        known |= found
    return made


def groups_of(model: Model, kind: type) -> list[PartOps]:
    return [
        PartOps(kind.__name__, frozenset([op])) for op in model.body.ops if isinstance(op, kind)
    ]


def test_chosen_parts_alternate_with_others_and_links_join_them(tmp_path):
    model = layered(tmp_path)
    parts = cut_parts(model, groups_of(model, elementwise.Sin))
    assert [part.tag for part in parts] == ["", "Sin"] * LAYERS + [""]
    found = run_parts(parts, {"x": X})
    assert np.array_equal(found["y"], Interpreter(model).run({"x": X})["y"])
    assert np.array_equal(found["x"], X), "an output that no op defines"
    middle = parts[2].model
    assert [port.name for port in middle.inputs] == ["link_1", "link_0"], "in the order of use"


@given(st.data())
def test_any_isolated_ops_compute_the_models_results(tmp_path_factory, data):
    model = layered(tmp_path_factory.mktemp("layers"))
    ops = [op for op in model.body.ops if op is not model.terminator]
    tags = data.draw(st.lists(st.sampled_from(["", "", "A", "B"]), min_size=len(ops)))
    groups = [PartOps(tag, frozenset([op])) for op, tag in zip(ops, tags, strict=False) if tag]
    parts = cut_parts(model, groups)
    found = run_parts(parts, {"x": X})
    assert np.array_equal(found["y"], Interpreter(model).run({"x": X})["y"])
    dynamic = [op for op in model.body.ops if not isinstance(op, Constant)]
    moved = {op for group in groups for op in group.ops} & set(dynamic)
    assert sum(bool(part.tag) for part in parts) == len(moved), "constants go with their users"


def test_a_part_that_depends_on_its_own_results_is_refused(tmp_path):
    model = layered(tmp_path)
    ends = [op for op in model.body.ops if isinstance(op, matmul.MatMul)]
    with pytest.raises(CompilerUsageError, match="'BOTH' cannot run as one"):
        cut_parts(model, [PartOps("BOTH", frozenset(ends[:2]))])


def test_parts_of_several_ops_are_one_function_for_any_hash_order(tmp_path):
    """A set of ops has no order; a part's outputs have the model's order."""
    model = layered(tmp_path, outputs=True)
    groups: list[list[Operation]] = [[]]
    for op in model.body.ops:
        if not isinstance(op, Constant) and op is not model.terminator:
            groups[-1].append(op)
            if len(groups[-1]) == 4:
                groups.append([])
    parts = cut_parts(model, [PartOps("layer", frozenset(ops)) for ops in groups if ops])
    assert [function.calls for function in find_functions(parts)] == [[0, 1, 2, 3]]
    for layer, handed_on in enumerate(["link_0", "link_1", "link_2", "y"]):
        names = [port.name for port in parts[layer].model.outputs]
        assert names == [f"inner{layer}", handed_on]


@given(data=st.data())
def test_even_parts_are_consecutive_and_at_most_the_given_number(tmp_path_factory, data) -> None:
    model = layered(tmp_path_factory.mktemp("stretches"), outputs=data.draw(st.booleans()))
    most = data.draw(st.none() | st.integers(1, 20))
    groups = even_parts(model, "some", most)
    carrying = [op for op in model.body.ops if op.operands and op is not model.terminator]
    assert sorted(map(id, carrying)) == sorted(id(op) for group in groups for op in group.ops)
    assert len(groups) == (len(carrying) if most is None else min(most, len(groups)))
    parts = cut_parts(model, groups)
    assert [part.tag for part in parts if part.tag] == ["some"] * len(groups)
    found = run_parts(parts, {"x": X})
    assert all(
        np.array_equal(found[n], value) for n, value in Interpreter(model).run({"x": X}).items()
    )


def test_even_parts_end_where_few_values_live(tmp_path) -> None:
    """Between two layers only x lives; within a layer h and sin(h) do."""
    model = layered(tmp_path, same_bias=True)
    parts = cut_parts(model, even_parts(model, "layer", LAYERS))
    links = [[p.name for p in part.model.inputs] for part in parts if part.tag]
    assert [len(names) for names in links] == [1] * LAYERS


def test_a_conversion_stays_with_the_op_that_uses_it() -> None:
    model, (ids,) = Model.build([("ids", tensor("i64", (3,)))])
    g = GraphBuilder(model)
    table = g.constant(np.eye(8, dtype=np.float32))
    rows = g.gather(table, g.convert(ids, "i32"), 0)
    model.set_outputs([("y", g.op(elementwise.Sin, rows))])
    names = [{op.name for op in group.ops} for group in even_parts(model, "op")]
    assert names == [{"ov.Convert", "ov.Gather"}, {"ov.Sin"}]


@given(data=st.data())
def test_parts_with_their_enclosed_ops_can_be_cut_out(tmp_path_factory, data) -> None:
    """Exactly the ops between the chosen ops of a range are added, for any choice."""
    model = layered(tmp_path_factory.mktemp("enclosed"))
    stretches = even_parts(model, "some", data.draw(st.integers(1, 6)))
    named = [
        PartOps("some", frozenset(data.draw(st.sets(st.sampled_from(sorted(each.ops, key=id))))))
        for each in stretches
    ]
    groups = add_enclosed(model, named)
    for before, after, stretch in zip(named, groups, stretches, strict=True):
        assert before.ops <= after.ops <= stretch.ops
    found = run_parts(cut_parts(model, [group for group in groups if group.ops]), {"x": X})
    assert np.array_equal(found["y"], Interpreter(model).run({"x": X})["y"])


def test_a_model_without_chosen_ops_is_one_part(tmp_path):
    model = layered(tmp_path)
    (part,) = cut_parts(model, [])
    assert part.tag == ""
    assert np.array_equal(run_parts([part], {"x": X})["y"], Interpreter(model).run({"x": X})["y"])


def test_equal_parts_are_calls_of_one_function_with_separate_weights(tmp_path):
    model = layered(tmp_path)
    parts = cut_parts(model, groups_of(model, elementwise.Sin))
    functions = find_functions(parts)
    # The first part has no bias before it, and the last one no matmul after it.
    assert [(f.tag, f.calls) for f in functions] == [
        ("", [0]),
        ("Sin", [1, 3, 5, 7]),
        ("", [2, 4, 6]),
        ("", [8]),
    ]
    assert [f.has_weights_of_calls for f in functions] == [False, False, True, False]
    made = compile_function(functions[2].merged(), Options(precision="f32"))
    (weight,) = made.weights.values()
    offsets = [int(name.split("_")[2]) for name in weight]
    assert offsets == [layer * WIDTH * WIDTH * 4 for layer in (1, 2, 3)]
    (literal,) = made.literals.values()
    assert [np.frombuffer(each, np.float32)[0] for each in literal] == [0, 1, 2]


def test_weights_common_to_all_calls_stay_in_the_function(tmp_path):
    model = layered(tmp_path, same_bias=True)
    functions = find_functions(cut_parts(model, groups_of(model, elementwise.Sin)))
    assert not compile_function(functions[2].merged(), Options(precision="f32")).literals


def test_a_weight_used_twice_differs_from_two_weights():
    """Two uses that share one input in the first call must share one in all calls."""

    def product(a: float, b: float) -> Part:
        model, (x,) = Model.build([("x", tensor("f32", (1, 2)))])
        g = GraphBuilder(model)
        for value in (a, b):
            c = g.add(Constant.inline(np.full((1, 2), value, np.float32))).output
            x = g.op(elementwise.Multiply, x, c)
        model.set_outputs([("y", x)])
        return Part("", model)

    same, also_same, different = product(1, 1), product(2, 2), product(3, 4)
    found = find_functions([same, also_same, different])
    assert [function.calls for function in found] == [[0, 1], [2]]


def test_parts_with_other_shapes_or_axes_are_other_functions():
    def part(width: int, axis: int) -> Part:
        model, (x,) = Model.build([("x", tensor("f32", (2, width)))])
        g = GraphBuilder(model)
        model.set_outputs([("y", g.transpose(x, [axis, 1 - axis]))])
        return Part("", model)

    found = find_functions([part(2, 0), part(2, 1), part(3, 1), part(2, 1)])
    assert [function.calls for function in found] == [[0], [1, 3], [2]]
