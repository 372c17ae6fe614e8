"""Unrolled matmuls and kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler_layer.elements import NUMPY
from compiler_layer.model import context
from compiler_layer.passes.tile import Tile
from compiler_layer.reference.interpreter import Interpreter


@pytest.mark.long
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_a_matmul_in_any_blocks_computes_the_matmul(unroll: Any, data: st.DataObject) -> None:
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


@pytest.mark.parametrize("zeros", [False, True])
def test_channels_that_share_one_scale_may_be_cut(unroll: Any, zeros: bool) -> None:
    """Cut a matmul with more channels than a DPU task accepts: each part is scaled separately."""
    draw = np.random.default_rng(5)
    m, n, k = 3, 32, 80
    inputs = {
        "a": draw.standard_normal((m, k)).astype("f4"),
        "b": draw.integers(0, 256, (n, k)).astype(np.uint8),
        "scales": draw.random((n, 1)).astype("f4"),
    }
    if zeros:
        inputs["zeros"] = draw.integers(0, 256, (n, 1)).astype(np.uint8)
    types = {key: unroll.type_of(key, array) for key, array in inputs.items()}
    tables = " scales %scales" + " zeros %zeros" * zeros
    kinds = f" scales {types['scales']}" + f" zeros {types.get('zeros')}" * zeros
    model = unroll.model_of(
        inputs,
        f"%y = npu.matmul(%a, %b){tables} {{transpose_a = false, transpose_b = true, "
        f'split = "n"}} : ({types["a"]}, {types["b"]}){kinds}',
        "f32",
        (m, n),
    )
    steps = inputs["b"].astype("f8") - inputs.get("zeros", np.zeros((n, 1)))
    expected = inputs["a"] @ (steps * inputs["scales"]).T
    actual = unroll.run(unroll.tiled(model, (3, 16, 32), 2), inputs, 2)
    assert np.abs(actual - expected).max() <= 1e-5 * np.abs(expected).max()


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_a_kernel_in_any_blocks_computes_the_kernel(unroll: Any, data: st.DataObject) -> None:
    """Load operands that repeat in any dimensions once for all blocks that share them."""
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
    block = tuple(data.draw(st.integers(1, d)) for d in domain)
    tiles = data.draw(st.integers(1, 4))
    expected = inputs["x"] * inputs["c"]
    assert np.array_equal(unroll.run(unroll.tiled(model, block, tiles), inputs, tiles), expected)


@pytest.mark.matrix
@pytest.mark.parametrize("element", ["f16", "f32"])
@pytest.mark.parametrize("width", [256_000, 256_155])
def test_logits_of_a_large_vocabulary_are_capped(unroll: Any, width: int, element: str) -> None:
    """Cut rows, and operands that repeat for all rows, but not operands that repeat in a row."""
    draw = np.random.default_rng(width)
    shapes = {"x": (2, width), "bias": (1, width), "limit": (2, 1)}
    inputs = {name: draw.random(shape).astype(NUMPY[element]) for name, shape in shapes.items()}
    x, bias, limit = (unroll.type_of(name, array) for name, array in inputs.items())
    model = unroll.model_of(
        inputs,
        f"%y = npu.kernel(%x, %bias, %limit) {{\n^bb0(%a: {x}, %b: {bias}, %c: {limit}):\n"
        f"%sum = ov.Add(%a, %b) : ({x}, {bias}) -> {x}\n"
        f"%small = ov.Divide(%sum, %c) : ({x}, {limit}) -> {x}\n"
        f"%soft = ov.Tanh(%small) : ({x}) -> {x}\n"
        f"%r = ov.Multiply(%soft, %c) : ({x}, {limit}) -> {x}\n"
        f"npu.yield %r : {x}\n}} : ({x}, {bias}, {limit})",
        element,
        shapes["x"],
    )
    expected = Interpreter(model).run(inputs)["y"].astype("f8")
    tile = Tile(unroll.platform.name)
    tile.apply(context(), model.module)
    actual = unroll.run(model, inputs, tile.used_tiles())
    error = {"f32": 1e-6, "f16": 2e-3}[element] * np.abs(expected).max()
    assert np.abs(actual - expected).max() <= error
