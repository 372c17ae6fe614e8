"""Attention over a cache in fewer bits than the activations: moved bytes and stored types."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.builder import GraphBuilder
from compiler_layer.compile import compile_model
from compiler_layer.dialects import npu
from compiler_layer.dialects.ov.attention import ScaledDotProductAttention
from compiler_layer.dialects.ov.op import bool_attr
from compiler_layer.dialects.ov.quantize import Dequantize
from compiler_layer.dialects.ov.types import element_of, tensor
from compiler_layer.explain import explain
from compiler_layer.model import Model
from compiler_layer.pipeline import Options, lower

HEADS, KEY_HEADS, WIDTH = 16, 8, 64


def attending(tokens: int, past: int, quantised: bool) -> Model:
    """Return attention of new tokens over themselves and a past that is stored token by token."""
    kinds = [("q", tensor("f16", (1, HEADS, tokens, WIDTH)))]
    for name in ("k", "v"):
        for part, rows in (("past", past), ("new", tokens)):
            element = "i8" if quantised else "f16"
            kinds.append((f"{part}_{name}", tensor(element, (1, rows, KEY_HEADS, WIDTH))))
            kinds.append((f"{part}_{name}_scales", tensor("f16", (1, rows, KEY_HEADS, 1))))
    model, arguments = Model.build(kinds)
    given = dict(zip((name for name, _ in kinds), arguments, strict=True))
    g = GraphBuilder(model)

    def rows(name: str) -> SSAValue:
        stored, scales = given[name], given[f"{name}_scales"]
        if quantised:
            stored = g.op(Dequantize, stored, scales, [], destination_type=StringAttr("f16"))
        return g.transpose(stored, 0, 2, 1, 3)

    k, v = (g.concat([rows(f"past_{name}"), rows(f"new_{name}")], 2) for name in "kv")
    flags = {"causal": bool_attr(False)}
    model.set_outputs([("y", g.op(ScaledDotProductAttention, given["q"], k, v, [], **flags))])
    return model


@pytest.mark.parametrize("past", [1000, 8000])
def test_an_8_bit_cache_moves_little_more_than_half_the_bytes(past: int) -> None:
    def bytes_of(quantised: bool) -> int:
        blob = compile_model(attending(1, past, quantised), Options())
        return sum(layer.ddr_bytes for layer in explain(blob).layers)

    plain, small = bytes_of(quantised=False), bytes_of(quantised=True)
    # A row of a head has 64 bytes instead of 128, and two bytes of a scale, which four tiles load
    # for all eight heads.
    assert 0.5 <= small / plain <= 0.56


def test_no_kernel_widens_an_8_bit_cache() -> None:
    model = attending(4, 60, quantised=True)
    lower(model, Options())
    (attention,) = [op for op in model.body.ops if isinstance(op, npu.Attention)]
    assert {element_of(part) for part in (*attention.k, *attention.v)} == {"i8"}
    kernels = [op for op in model.body.ops if isinstance(op, npu.Kernel)]
    assert all(element_of(x) != "i8" for kernel in kernels for x in kernel.operands)


def attending_to_floats(slots: int, past: int, kind: str, activations: str = "f32") -> Model:
    """Return attention of one token in each of several slots, with separate caches of ``kind``."""
    new = [(f"new_{name}", tensor(activations, (slots, KEY_HEADS, 1, WIDTH))) for name in "kv"]
    kinds = [("q", tensor(activations, (slots, HEADS, 1, WIDTH))), *new]
    for slot in range(slots):
        kinds += [(f"{name}{slot}", tensor(kind, (1, past, KEY_HEADS, WIDTH))) for name in "kv"]
    model, arguments = Model.build(kinds)
    given = dict(zip((name for name, _ in kinds), arguments, strict=True))
    g = GraphBuilder(model)

    def rows(name: str) -> SSAValue:
        every = [given[f"{name}{slot}"] for slot in range(slots)]
        stored = g.convert(g.concat(every, 0) if slots > 1 else every[0], activations)
        new = g.convert(g.convert(given[f"new_{name}"], kind), activations)
        return g.concat([g.transpose(stored, 0, 2, 1, 3), new], 2)

    flags = {"causal": bool_attr(False)}
    y = g.op(ScaledDotProductAttention, given["q"], rows("k"), rows("v"), [], **flags)
    model.set_outputs([("y", y)])
    return model


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("kind", ["f16", "bf16", "f8e4m3"])
def test_narrow_float_caches_are_read_in_their_stored_type(slots: int, kind: str) -> None:
    model = attending_to_floats(slots, 60, kind)
    lower(model, Options(precision="f32"))
    (attention,) = [op for op in model.body.ops if isinstance(op, npu.Attention)]
    assert {element_of(part) for part in (*attention.k, *attention.v)} == {kind}
    assert len(attention.k) == 2 * slots, "caches are not joined"


def test_an_f16_cache_under_f32_moves_half_the_bytes() -> None:
    def bytes_of(kind: str) -> int:
        blob = compile_model(attending_to_floats(1, 4000, kind), Options(precision="f32"))
        return sum(layer.ddr_bytes for layer in explain(blob).layers)

    assert 0.5 <= bytes_of("f16") / bytes_of("f32") <= 0.51
