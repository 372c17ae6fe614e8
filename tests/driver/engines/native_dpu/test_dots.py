"""Matmuls of few rows with the processor's dot products, if it has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.engines.native.dpu import nibbles
from driver_layer.engines.native.jit.host import detect, native_isa

HOST = detect(native_isa())
needs_bf16 = pytest.mark.skipif(not HOST.dots_bf16, reason="the processor has no dots of bf16")
DEPTHS = st.sampled_from([1, 2, 17, 63, 64, 65, 127, 128, 129, 192, 300, 513, 1100])
NIBBLES = [
    ("f16", "u4", "f16", {"zero": "u8", "scale": "f16"}),
    ("f16", "u4", "f32", {"zero": "i8", "scale": "f32"}),
    ("f16", "i4", "f16", {"zero": None, "scale": "f16"}),
    ("f16", "i4", "f32", {"zero": "i8", "scale": None}),
    ("bf16", "u4", "bf16", {"zero": "u8", "scale": "bf16"}),
    ("bf16", "i4", "f32", {"zero": None, "scale": None}),
]
QUADS = [
    ("i8", "i8", "f16", {"zero": None, "scale": "f16"}),
    ("i8", "u8", "f32", {"zero": "u8", "scale": "f32"}),
    ("u8", "i8", "f32", {"zero": "i8", "scale": None}),
    ("u8", "u8", "f16", {"zero": "u8", "scale": "bf16"}),
]

Kinds = tuple[str, str, str, dict[str, Any]]


def _named(kinds: Kinds) -> str:
    return "-".join([*kinds[:3], str(kinds[3]["zero"]), str(kinds[3]["scale"])])


@needs_bf16
@pytest.mark.parametrize("kinds", NIBBLES, ids=_named)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_a_row_with_4_bit_weights_agrees_with_the_reference(
    dpu: Any, kinds: Kinds, data: st.DataObject
) -> None:
    fixed = kinds[3] | {
        "layout": "k",
        "m": 1,
        "k": data.draw(DEPTHS),
        "group": data.draw(st.sampled_from([0, 64, 128, 192, 256])),
    }
    workload = data.draw(dpu.workloads(kinds[:3], **fixed))
    dpu.assert_agrees(workload, native_isa(), nibbles.choose)


@needs_bf16
@settings(max_examples=15, deadline=None)
@given(data=st.data(), seed=st.integers(0, 1 << 30))
def test_nonfinite_activations_propagate(dpu: Any, data: st.DataObject, seed: int) -> None:
    fixed = NIBBLES[0][3] | {"layout": "k", "m": 1, "alpha": 1.0}
    group = data.draw(st.sampled_from([0, 64, 128]))
    workload = data.draw(dpu.workloads(NIBBLES[0][:3], group=group, **fixed))
    dpu.sprinkle(workload, np.random.default_rng(seed))
    dpu.assert_agrees(workload, native_isa(), nibbles.choose)


@pytest.mark.matrix
@pytest.mark.parametrize("kinds", QUADS, ids=_named)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_few_rows_of_integers_agree_with_the_reference(
    dpu: Any, kinds: Kinds, data: st.DataObject
) -> None:
    fixed = kinds[3] | {
        "layout": "k",
        "m": data.draw(st.integers(1, 4)),
        "k": data.draw(DEPTHS),
    }
    used = dpu.assert_agrees(data.draw(dpu.workloads(kinds[:3], **fixed)), native_isa())
    assert "quads" in used or not HOST.dots_bytes
