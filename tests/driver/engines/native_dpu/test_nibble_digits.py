"""Matmuls of one row of floats with 4-bit weights, by dot products of fixed-point digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.driver.engines.native_dpu.byte_dots import LEVELS, Kinds, named, needs_byte_dots

from driver_layer.engines.native.dpu import nibble_digits
from driver_layer.engines.native.jit.host import Isa, native_isa

pytestmark = needs_byte_dots

DEPTHS = st.sampled_from([257, 300, 513, 576, 1100, 1408])
GROUPS = st.sampled_from([32, 64, 96, 128, 192, 256])
KINDS = [
    ("f16", "u4", "f16", {"zero": "u8", "scale": "f16"}),
    ("f16", "u4", "f32", {"zero": "f16", "scale": "f32"}),
    ("f16", "i4", "f16", {"zero": None, "scale": "f16"}),
    ("f16", "i4", "f32", {"zero": "i8", "scale": None}),
    ("bf16", "u4", "bf16", {"zero": None, "scale": "bf16"}),
    ("f32", "u4", "f32", {"zero": "u8", "scale": "f32"}),
]


def _draw(dpu: Any, data: st.DataObject, kinds: Kinds) -> Any:
    fixed = kinds[3] | {
        "layout": "k",
        "m": 1,
        "k": data.draw(DEPTHS),
        "group": data.draw(GROUPS),
    }
    return data.draw(dpu.workloads(kinds[:3], **fixed))


@pytest.mark.parametrize("isa", LEVELS, ids=lambda isa: isa.name.lower())
@pytest.mark.parametrize("kinds", KINDS, ids=named)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_row_with_4_bit_weights_agrees_with_the_reference(
    dpu: Any, isa: Isa, kinds: Kinds, data: st.DataObject
) -> None:
    dpu.assert_agrees(_draw(dpu, data, kinds), isa, nibble_digits.choose)


@pytest.mark.parametrize("large", [1e-30, 1e-3, 1e2, 1e4, 1e6])
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_an_outlier_with_zero_weights_does_not_lose_the_other_numbers(
    dpu: Any, large: float, data: st.DataObject
) -> None:
    tables = {"zero": None, "scale": "f32", "group": data.draw(GROUPS), "m": 1}
    depth = data.draw(st.sampled_from([300, 576]))
    workload = data.draw(dpu.plain(("f32", "i4", "f32"), k=depth, **tables))
    pair = data.draw(st.integers(0, depth // 2 - 1))
    workload.operands["act"].view(np.float32).reshape(-1, depth)[:, 2 * pair] = large
    workload.operands["weight"].reshape(-1, depth // 2)[:, pair] = 0
    dpu.assert_agrees(workload, native_isa(), nibble_digits.choose)


@settings(max_examples=11, deadline=None)
@given(data=st.data(), seed=st.integers(0, 1 << 30))
def test_nonfinite_activations_propagate(dpu: Any, data: st.DataObject, seed: int) -> None:
    workload = _draw(dpu, data, KINDS[0])
    workload.registers["alpha"] = 1.0
    dpu.sprinkle(workload, np.random.default_rng(seed))
    dpu.assert_agrees(workload, native_isa(), nibble_digits.choose)
