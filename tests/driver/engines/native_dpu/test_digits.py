"""Matmuls of few rows of floats with bytes, by dot products of fixed-point digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.driver.engines.native_dpu.byte_dots import LEVELS, Kinds, named, needs_byte_dots

from driver_layer.engines.native.dpu import digits
from driver_layer.engines.native.jit.host import Isa, native_isa

pytestmark = needs_byte_dots

DEPTHS = st.sampled_from([1, 2, 17, 63, 64, 65, 127, 128, 192, 300, 513, 1100])
KINDS = [
    ("f16", "u8", "f16", {"zero": "u8", "scale": "f16"}),
    ("f16", "u8", "f32", {"zero": "i8", "scale": None}),
    ("f16", "i8", "f16", {"zero": None, "scale": "f16"}),
    ("f16", "i8", "f32", {"zero": "u8", "scale": "f32"}),
    ("bf16", "u8", "bf16", {"zero": None, "scale": "bf16"}),
    ("f32", "i8", "f32", {"zero": "i8", "scale": "f32"}),
]


def _draw(dpu: Any, data: st.DataObject, kinds: Kinds) -> Any:
    rows = data.draw(st.integers(1, digits.MOST_ROWS))
    fixed = kinds[3] | {"layout": "k", "group": 0, "m": rows, "k": data.draw(DEPTHS)}
    return data.draw(dpu.workloads(kinds[:3], **fixed))


@pytest.mark.parametrize("isa", LEVELS, ids=lambda isa: isa.name.lower())
@pytest.mark.parametrize("kinds", KINDS, ids=named)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_few_rows_with_byte_weights_agree_with_the_reference(
    dpu: Any, isa: Isa, kinds: Kinds, data: st.DataObject
) -> None:
    dpu.assert_agrees(_draw(dpu, data, kinds), isa, digits.choose)


@pytest.mark.parametrize("spread", [1e-30, 1e-6, 1e-3, 30.0, 6e4, 1e30])
@pytest.mark.parametrize("kinds", [KINDS[0], KINDS[3], KINDS[5]], ids=named)
@settings(max_examples=9, deadline=None)
@given(data=st.data(), seed=st.integers(0, 1 << 30))
def test_a_row_may_have_one_outlier_far_above_or_below_the_others(
    dpu: Any, kinds: Kinds, spread: float, data: st.DataObject, seed: int
) -> None:
    workload = _draw(dpu, data, kinds)
    stored = workload.operands["act"].view({"f16": np.float16, "f32": np.float32}[kinds[0]])
    with np.errstate(over="ignore"):
        stored[np.random.default_rng(seed).integers(stored.size)] = spread
    dpu.assert_agrees(workload, native_isa(), digits.choose)


@pytest.mark.parametrize("spread", [1e2, 1e4, 1e6, 1e9])
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_an_outlier_with_zero_weights_does_not_lose_the_other_numbers(
    dpu: Any, spread: float, data: st.DataObject
) -> None:
    tables = {"zero": None, "scale": "f32", "group": 0, "m": data.draw(st.integers(1, 2))}
    depth = data.draw(st.sampled_from([2, 17, 64, 300]))
    workload = data.draw(dpu.plain(("f32", "i8", "f32"), k=depth, **tables))
    place = data.draw(st.integers(0, depth - 1))
    workload.operands["act"].view(np.float32).reshape(-1, depth)[:, place] = spread
    workload.operands["weight"].reshape(-1, depth)[:, place] = 0
    dpu.assert_agrees(workload, native_isa(), digits.choose)


@pytest.mark.parametrize("scale", [0.0, 1e-38, 1e-24, 1e24])
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_rows_may_be_huge_tiny_or_zero(dpu: Any, scale: float, data: st.DataObject) -> None:
    workload = _draw(dpu, data, KINDS[5])
    stored = workload.operands["act"].view(np.float32)
    stored *= np.float32(scale)
    dpu.assert_agrees(workload, native_isa(), digits.choose)


@settings(max_examples=11, deadline=None)
@given(data=st.data(), seed=st.integers(0, 1 << 30))
def test_nonfinite_activations_propagate(dpu: Any, data: st.DataObject, seed: int) -> None:
    workload = _draw(dpu, data, KINDS[0])
    workload.registers["alpha"] = 1.0
    dpu.sprinkle(workload, np.random.default_rng(seed))
    dpu.assert_agrees(workload, native_isa(), digits.choose)
