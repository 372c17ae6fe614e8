"""GroupQueryAttention computes the same before and after its decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import StringAttr

from compiler_layer.builder import GraphBuilder
from compiler_layer.compile import compile_model
from compiler_layer.dialects.ov.constant import Constant
from compiler_layer.dialects.ov.group_query_attention import GroupQueryAttention
from compiler_layer.dialects.ov.op import bool_attr, float_attr, int_attr
from compiler_layer.dialects.ov.types import tensor
from compiler_layer.errors import UnsupportedOps
from compiler_layer.model import Model
from compiler_layer.passes.decompose_gqa import DecomposeGQA
from compiler_layer.pipeline import Options
from compiler_layer.reference.interpreter import Interpreter

NAMES = ("q", "k", "v", "past_key", "past_value", "seqlens_k")
ABSENT = np.empty(0, np.float32)
USUAL: dict[str, Any] = {
    "causal": bool_attr(True),
    "kv_cache_bit_width": int_attr(0),
    "sliding_window_cache": bool_attr(False),
    "k_quant_type": StringAttr("NONE"),
    "v_quant_type": StringAttr("NONE"),
}


@settings(max_examples=18, deadline=None)
@given(data=st.data())
def test_the_decomposition_computes_the_same(data: st.DataObject) -> None:
    def number(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    shared, tokens, half = number(1, 3), number(1, 5), number(1, 3)
    heads, width, rows = shared * number(1, 3), 2 * half, number(5, 9)
    angles = number(1, half)
    # A prompt may be shorter than the model's token input: the tokens before it are padding.
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
    positions = draw.integers(0, rows, (1, tokens)) if data.draw(st.booleans()) else ABSENT
    sinks = draw.standard_normal(heads).astype(np.float32) if data.draw(st.booleans()) else ABSENT
    model = graph(
        shapes,
        [
            *(draw.standard_normal((rows, angles)).astype(np.float32) for _ in range(2)),
            *(positions, ABSENT, sinks),
        ],
        num_heads=int_attr(heads),
        kv_num_heads=int_attr(shared),
        scale=float_attr(data.draw(st.sampled_from([0.0, 0.3]))),
        do_rotary=bool_attr(rotary),
        rotary_interleaved=bool_attr(data.draw(st.booleans())),
        local_window_size=int_attr(data.draw(st.sampled_from([-1, 1, 2, 4]))),
        smooth_softmax=bool_attr(data.draw(st.booleans())),
    )
    expected = Interpreter(model).run(feeds)
    DecomposeGQA().apply(None, model.module)  # pyright: ignore[reportArgumentType] (no pass needs it)
    assert not any(isinstance(op, GroupQueryAttention) for op in model.body.ops)
    found = Interpreter(model).run(feeds)
    used = max(tokens - last - 1, 0)
    np.testing.assert_allclose(found["y"][:, used:], expected["y"][:, used:], rtol=1e-4, atol=1e-5)
    for name in ("present_key", "present_value"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-6)


def graph(shapes: Any, others: list[np.ndarray], **properties: Any) -> Model:
    kinds = [(name, tensor("f32", shape)) for name, shape in shapes.items()]
    model, arguments = Model.build([*kinds, ("seqlens_k", tensor("i32", (shapes["q"][0], 1)))])
    g = GraphBuilder(model)
    total = g.constant(np.array([0], np.int32))
    constants = [g.add(Constant.inline(each)).output for each in others]
    op = g.add(
        GroupQueryAttention.make(
            [*arguments, total, constants],
            **USUAL | properties,
        )
    )
    names = ("y", "present_key", "present_value")
    model.set_outputs(list(zip(names, op.results, strict=True)))
    return model


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no key heads": ({"kv_num_heads": int_attr(0)}, "2 query heads cannot share 0 key heads"),
    "uneven groups": ({"num_heads": int_attr(3)}, "3 query heads cannot share 2 key heads"),
    "other heads": ({"num_heads": int_attr(4)}, r"an operand is \[1, 2, 1, 4\], not 4 heads of 4"),
    "too many angles": (
        {"tables": 3},
        r"cos and sin tables \[\[6, 3\], \[6, 3\]\] do not fit 4 channels",
    ),
    "a sink too few": ({"sinks": 1}, r"head_sink \[1\] does not fit 2 heads"),
    "a cache of few bits": ({"kv_cache_bit_width": int_attr(4)}, "with a quantized cache"),
    "no causal mask": ({"causal": bool_attr(False)}, "with non-causal attention"),
}


@pytest.mark.parametrize("what", BAD)
def test_inconsistent_operands_and_attributes_are_refused(what: str) -> None:
    changed, says = BAD[what]
    with pytest.raises(ValueError, match=says):
        small(1, **changed)


def test_the_refusal_of_a_batch_states_the_reason() -> None:
    model = small(2)
    with pytest.raises(UnsupportedOps, match="GroupQueryAttention-extension over a batch of 2: "):
        compile_model(model, Options())


def small(batch: int, tables: int = 2, sinks: int = 2, **properties: Any) -> Model:
    shapes = dict.fromkeys(("q", "k", "v"), (batch, 2, 1, 4))
    caches = dict.fromkeys(("past_key", "past_value"), (batch, 2, 6, 4))
    angles = np.ones((6, tables), np.float32)
    others = [angles, angles, ABSENT, ABSENT, np.ones(sinks, np.float32)]
    usual = {
        "num_heads": int_attr(2),
        "kv_num_heads": int_attr(2),
        "scale": float_attr(0.0),
        "do_rotary": bool_attr(True),
        "rotary_interleaved": bool_attr(False),
        "local_window_size": int_attr(-1),
        "smooth_softmax": bool_attr(False),
    }
    return graph(shapes | caches, others, **usual | properties)
