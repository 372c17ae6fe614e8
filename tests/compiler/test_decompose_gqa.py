"""GroupQueryAttention means the same after it has been taken apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import StringAttr

from compiler_layer.builder import GraphBuilder
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.group_query_attention import GroupQueryAttention
from compiler_layer.dialects.ov.op import bool_attr, float_attr, int_attr
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.model import Model
from compiler_layer.passes.decompose_gqa import DecomposeGQA
from compiler_layer.reference.interpreter import Interpreter

NAMES = ("q", "k", "v", "past_key", "past_value", "seqlens_k")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_it_computes_the_same(data: st.DataObject) -> None:
    def number(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    shared, tokens, half = number(1, 3), number(1, 5), number(1, 3)
    heads, width, rows = shared * number(1, 3), 2 * half, number(5, 9)
    angles = number(1, half)
    # A prompt may be shorter than the model takes: what is before it is padding.
    last = number(0, rows - 1)
    rotary = data.draw(st.booleans())
    draw = np.random.default_rng(number(0, 99))
    shapes = {
        "q": (1, heads, tokens, width),
        **dict.fromkeys(("k", "v"), (1, shared, tokens, width)),
        **dict.fromkeys(("past_key", "past_value"), (1, shared, rows, width)),
    }
    feeds: dict[str, np.ndarray] = {
        name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
    }
    feeds["seqlens_k"] = np.array([[last]], np.int32)
    model = graph(
        shapes,
        [draw.standard_normal((rows, angles)).astype(np.float32) for _ in range(2)],
        num_heads=int_attr(heads),
        kv_num_heads=int_attr(shared),
        scale=float_attr(data.draw(st.sampled_from([0.0, 0.3]))),
        do_rotary=bool_attr(rotary),
        rotary_interleaved=bool_attr(data.draw(st.booleans())),
        local_window_size=int_attr(data.draw(st.sampled_from([-1, 1, 2, 4]))),
    )
    expected = Interpreter(model).run(feeds)
    DecomposeGQA().apply(None, model.module)  # pyright: ignore[reportArgumentType] (no pass needs it)
    assert not any(isinstance(op, GroupQueryAttention) for op in model.body.ops)
    found = Interpreter(model).run(feeds)
    used = max(tokens - last - 1, 0)
    np.testing.assert_allclose(found["y"][:, used:], expected["y"][:, used:], rtol=1e-4, atol=1e-5)
    for name in ("present_key", "present_value"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-6)


def graph(shapes: Any, tables: list[np.ndarray], **properties: Any) -> Model:
    kinds = [(name, tensor("f32", shape)) for name, shape in shapes.items()]
    model, arguments = Model.build([*kinds, ("seqlens_k", tensor("i32", (1, 1)))])
    g = GraphBuilder(model)
    total = g.constant(np.array([0], np.int32))
    constants = [g.add(Constant.inline(each)).output for each in tables]
    op = g.add(
        GroupQueryAttention.make(
            [*arguments, total, constants],
            **properties,
            causal=bool_attr(True),
            kv_cache_bit_width=int_attr(0),
            sliding_window_cache=bool_attr(False),
            smooth_softmax=bool_attr(False),
            k_quant_type=StringAttr("NONE"),
            v_quant_type=StringAttr("NONE"),
        )
    )
    names = ("y", "present_key", "present_value")
    model.set_outputs(list(zip(names, op.results, strict=True)))
    return model
