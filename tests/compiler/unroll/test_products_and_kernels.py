"""Products and kernels cut into tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler_layer.elements import NUMPY
from compiler_layer.reference.interpreter import Interpreter


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_product_in_any_blocks_computes_the_product(unroll: Any, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["f32", "f16", "u8", "nibbles", "integers"]))
    m, n = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 70))
    groups, group = data.draw(st.integers(1, 4)), data.draw(st.sampled_from([16, 32]))
    k = groups * group
    integers = kind == "integers"
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    element = "f16" if kind == "f16" else "f32"
    inputs = {"a": draw.standard_normal((m, k)).astype(NUMPY[element])}
    if integers:
        inputs["a"] = draw.integers(0, 256, (m, k)).astype(np.uint8)
    quantised = kind in ("u8", "nibbles", "integers")
    name = "nibbles" if kind == "nibbles" else "b"
    if quantised:
        top = 16 if kind == "nibbles" else 256
        inputs[name] = draw.integers(0, top, (n, k)).astype(np.uint8)
        tables = (n, 1 if integers else groups)
        inputs["scales"] = draw.random(tables).astype(np.float32)
        inputs["zeros"] = draw.integers(0, top, tables).astype(np.uint8)
    else:
        inputs[name] = draw.standard_normal((n, k)).astype(NUMPY[element])
    types = {key: unroll.type_of(key, array) for key, array in inputs.items()}
    tables = " scales %scales zeros %zeros" * quantised
    kinds = f" scales {types.get('scales')} zeros {types.get('zeros')}" * quantised
    split = data.draw(st.sampled_from("mn"))
    whole = ", a_scale = 0.25 : f64, a_zero = 77 : i64" * integers
    model = unroll.model_of(
        inputs,
        f"%y = npu.matmul(%a, %{name}){tables} {{transpose_a = false, transpose_b = true, "
        f'split = "{split}"{whole}}} : ({types["a"]}, {types[name]}){kinds}',
        element,
        (m, n),
    )
    expected = Interpreter(model).run(inputs)["y"]
    block = (
        data.draw(st.integers(1, m)),
        min(n, 16 * data.draw(st.integers(1, 5))),
        group * data.draw(st.integers(1, groups)),
    )
    tiles = data.draw(st.integers(1, 4))
    actual = unroll.run(unroll.tiled(model, block, tiles), inputs, tiles)
    limit = {"f32": 1e-5, "f16": 2e-3}[element] * np.abs(expected).max()
    assert np.abs(actual.astype("f8") - expected).max() <= limit


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_kernel_in_any_blocks_computes_the_kernel(unroll: Any, data: st.DataObject) -> None:
    """Operands that repeat in any dimensions are loaded once for all blocks that share them."""
    domain = tuple(data.draw(st.integers(1, 6)) for _ in range(3))
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    repeats = data.draw(st.tuples(*[st.booleans()] * 3))
    shape = tuple(1 if one else d for d, one in zip(domain, repeats, strict=True))
    inputs = {"x": draw.random(domain).astype("f4"), "c": draw.random(shape).astype("f4")}
    x, c = (unroll.type("f32", array.shape) for array in inputs.values())
    model = unroll.model_of(
        inputs,
        f"%y = npu.kernel(%x, %c) {{\n^bb0(%a: {x}, %b: {c}):\n"
        f"%r = ov.Multiply(%a, %b) : ({x}, {c}) -> {x}\nnpu.yield %r : {x}\n}} : ({x}, {c})",
        "f32",
        domain,
    )
    block = (*(data.draw(st.integers(1, d)) for d in domain[:-1]), domain[-1])
    tiles = data.draw(st.integers(1, 4))
    expected = inputs["x"] * inputs["c"]
    assert np.array_equal(unroll.run(unroll.tiled(model, block, tiles), inputs, tiles), expected)
