"""Reach of masks: an upper bound of the visible positions, and exact for constant masks."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov import elementwise, logic
from compiler_layer.model import Model
from compiler_layer.passes.lower_attention.mask_reach import reach_of
from compiler_layer.reference.interpreter import Interpreter

Flags = np.ndarray
LOWEST = np.float32(-65504)


def masks(rows: int, positions: int) -> tuple[Model, GraphBuilder, list[SSAValue]]:
    """Return a model with boolean inputs, a builder that adds ops to it, and its inputs."""
    kinds = [f"tensor<1x1x{rows}x{positions}xi1>", f"tensor<1x1x1x{positions}xi1>"]
    arguments = ", ".join(f'%x{i}: {kind} {{ov.names = "x{i}"}}' for i, kind in enumerate(kinds))
    model = Model.parse(
        f'func.func @main({arguments}) -> ({kinds[0]} {{ov.names = "y"}}) {{\n'
        f"func.return %x0 : {kinds[0]}\n}}"
    )
    last = model.body.last_op
    assert last is not None
    return model, GraphBuilder(model, last), list(model.body.args)


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_no_position_beyond_the_reach_is_visible(data: st.DataObject) -> None:
    rows, positions = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    model, g, inputs = masks(rows, positions)
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))

    def constant() -> SSAValue:
        count = data.draw(st.sampled_from([1, rows]))
        return g.constant(draw.random((1, 1, count, positions)) < 0.5)

    def drawn(depth: int) -> SSAValue:
        kinds = ["constant", "input", "compare"]
        kind = data.draw(st.sampled_from(kinds if depth == 0 else [*kinds, "and", "or", "view"]))
        match kind:
            case "constant":
                return constant()
            case "input":
                return data.draw(st.sampled_from(inputs))
            case "compare":
                tokens = g.constant(draw.integers(0, positions, (1, 1, rows, 1)))
                return g.op(logic.LessEqual, g.constant(np.arange(positions)), tokens)
            case "view":
                whole = g.op(logic.BitwiseAnd, drawn(depth - 1), inputs[0])
                return g.reshape(g.reshape(whole, rows, positions), 1, 1, rows, positions)
            case _:
                op = logic.BitwiseAnd if kind == "and" else logic.BitwiseOr
                return g.op(op, drawn(depth - 1), drawn(depth - 1))

    every = g.constant(np.ones((1, 1, rows, positions), bool))
    seen = g.op(logic.BitwiseAnd, drawn(3), every)
    added = g.op(elementwise.Select, seen, g.constant(np.float32(0)), g.constant(LOWEST))
    reach = reach_of(added, rows, positions)
    assert reach == reach_of(seen, rows, positions)
    model.set_outputs([("y", seen)])
    for number in range(3):
        given_inputs = {
            port.name: draw.random(port.type.get_shape()) < 0.5
            if number
            else np.ones(port.type.get_shape(), bool)
            for port in model.inputs
        }
        found = Interpreter(model).run(given_inputs)["y"].reshape(rows, positions)
        for row, flags in enumerate(found):
            limit = positions if reach is None else reach[row]
            assert not flags[limit:].any()
            assert limit >= 1


@given(data=st.data())
def test_the_reach_of_a_constant_mask_is_exact(data: st.DataObject) -> None:
    rows, positions = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    _, g, _ = masks(rows, positions)
    flags = st.lists(st.booleans(), min_size=positions, max_size=positions)
    seen = np.array(data.draw(st.lists(flags, min_size=rows, max_size=rows)))
    mask = g.constant(np.where(seen, np.float32(0), LOWEST)[None, None])
    wanted = [max((i + 1 for i, one in enumerate(row) if one), default=1) for row in seen.tolist()]
    expected = None if min(wanted) == positions else tuple(wanted)
    assert reach_of(mask, rows, positions) == expected


def test_shared_parts_of_a_mask_are_evaluated_once() -> None:
    """Each of 60 ops uses the one before twice: 2**60 paths lead to the constant."""
    _, g, inputs = masks(2, 3)
    mask = g.op(logic.BitwiseAnd, g.constant(np.array([[[[1, 0, 0], [1, 1, 0]]]], bool)), inputs[0])
    for _ in range(60):
        mask = g.op(logic.BitwiseOr, mask, mask)
    assert reach_of(mask, 2, 3) == (1, 2)


def test_a_bias_masks_no_position() -> None:
    """ALiBi lowers the scores of distant tokens, but does not mask them."""
    _, g, _ = masks(2, 3)
    assert reach_of(g.constant(np.full((1, 1, 2, 3), -1000, np.float32)), 2, 3) is None


def test_a_mask_too_large_for_folding_is_still_evaluated() -> None:
    _, g, _ = masks(2, 3)
    keys, queries = g.constant(np.arange(9000)), g.constant(np.arange(8000, 9000)[:, None])
    mask = g.op(logic.LessEqual, keys, queries)
    assert reach_of(mask, 1000, 9000) == tuple(range(8001, 9001))
