"""Matmuls of few rows with 4-bit weights, by look-ups, which need AVX-512."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.abi.dtypes import DType
from driver_layer.engines.native.dpu import MatmulProblem, choose, lookups
from driver_layer.engines.native.dpu.problem import WeightLayout
from driver_layer.engines.native.jit.host import Isa, detect, native_isa

LEVELS = [isa for isa in Isa if Isa.AVX512 <= isa <= native_isa()]
pytestmark = pytest.mark.skipif(not LEVELS, reason="the processor has no AVX-512")

ROWS = st.sampled_from([1, 2, 3, 4, 7, 14])
DEPTHS = st.sampled_from([1, 2, 17, 63, 64, 65, 127, 128, 129, 192, 300, 513, 1100])
GROUPS = st.sampled_from([0, 32, 64, 96, 128, 192, 256])
KINDS = [
    ("f16", "u4", "f16", {"zero": "u8", "scale": "f16"}),
    ("f16", "u4", "f32", {"zero": "f16", "scale": "f32"}),
    ("f16", "i4", "f16", {"zero": None, "scale": "f16"}),
    ("f16", "i4", "f32", {"zero": "i8", "scale": None}),
    ("bf16", "u4", "bf16", {"zero": "u8", "scale": "bf16"}),
    ("bf16", "i4", "f32", {"zero": None, "scale": None}),
    ("f32", "u4", "f32", {"zero": "u8", "scale": "f32"}),
]

Kinds = tuple[str, str, str, dict[str, Any]]


def _named(kinds: Kinds) -> str:
    return "-".join([*kinds[:3], str(kinds[3]["zero"]), str(kinds[3]["scale"])])


@pytest.mark.matrix
@pytest.mark.parametrize("isa", LEVELS, ids=lambda isa: isa.name.lower())
@pytest.mark.parametrize("kinds", KINDS, ids=_named)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_few_rows_with_4_bit_weights_agree_with_the_reference(
    dpu: Any, isa: Isa, kinds: Kinds, data: st.DataObject
) -> None:
    fixed = kinds[3] | {
        "layout": "k",
        "m": data.draw(ROWS),
        "k": data.draw(DEPTHS),
        "group": data.draw(GROUPS),
    }
    dpu.assert_agrees(data.draw(dpu.workloads(kinds[:3], **fixed)), isa, lookups.choose)


@settings(max_examples=15, deadline=None)
@given(data=st.data(), seed=st.integers(0, 1 << 30))
def test_nonfinite_activations_propagate(dpu: Any, data: st.DataObject, seed: int) -> None:
    fixed = KINDS[0][3] | {"layout": "k", "m": data.draw(ROWS), "alpha": 1.0}
    workload = data.draw(dpu.workloads(KINDS[0][:3], group=data.draw(GROUPS), **fixed))
    dpu.sprinkle(workload, np.random.default_rng(seed))
    dpu.assert_agrees(workload, native_isa(), lookups.choose)


def test_the_fastest_available_dot_products_are_chosen() -> None:
    problem = MatmulProblem(
        act=DType.FP16,
        weight=DType.U4,
        out=DType.FP16,
        scale=DType.FP16,
        zero=DType.U8,
        row_scales=False,
        accumulate=False,
        layout=WeightLayout.K,
        rows=1,
        group=128,
    )
    host = detect(LEVELS[-1])
    vectors = host.features - {"sse4a", "avx512vnni"} | {"avx512bf16"}
    one, two = problem, replace(problem, rows=2)

    def family(problem: MatmulProblem, *more: str) -> str:
        choice = choose(problem, replace(host, features=vectors | set(more)))
        return choice.spec.key.split()[1]

    assert family(one) == family(two) == family(two, "sse4a") == "lookups"
    assert family(one, "avx512vnni") == "nibble_digits"
    assert family(one, "sse4a", "avx512vnni") == "nibbles"
