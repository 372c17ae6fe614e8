"""Matmuls of few rows of floats with integers, by dot products of fixed-point digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.driver.engines.native_dpu.byte_dots import LEVELS, Kinds, named, needs_byte_dots

from driver_layer.abi.dtypes import ELEMENT_TYPES, DType
from driver_layer.engines.native.dpu import MatmulProblem, WeightLayout, choose, squares
from driver_layer.engines.native.dpu.problem import MANY_ROWS
from driver_layer.engines.native.jit.host import Host, Isa, detect

pytestmark = needs_byte_dots

ROWS = st.sampled_from([5, 8, 16])
DEPTHS = st.sampled_from([1, 2, 17, 63, 65, 128, 300, 513, 1100])
GROUPS = st.sampled_from([64, 384, 640])
KINDS = [
    ("f16", "u8", "f16", {"zero": "u8", "scale": "f16"}),
    ("f32", "i8", "f32", {"zero": "i8", "scale": "f32"}),
    ("bf16", "u8", "bf16", {"zero": None, "scale": None}),
    ("f16", "u4", "f16", {"zero": "u8", "scale": "f16"}),
    ("f16", "i4", "f32", {"zero": None, "scale": "bf16"}),
    ("f32", "u4", "f32", {"zero": "f16", "scale": "f32"}),
]


def _draw(dpu: Any, data: st.DataObject, kinds: Kinds) -> Any:
    fixed = kinds[3] | {
        "layout": "k",
        "m": data.draw(ROWS),
        "k": data.draw(DEPTHS),
        "group": data.draw(GROUPS) if kinds[1] in ("u4", "i4") else 0,
    }
    workload = data.draw(dpu.workloads(kinds[:3], **fixed))
    m, n = (int(workload.registers[size]) for size in ("m", "n"))
    workload.parts = [((0, m), (0, n))]
    return workload


@pytest.mark.matrix
@pytest.mark.parametrize("kinds", KINDS, ids=named)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_few_rows_with_integer_weights_agree_with_the_reference(
    dpu: Any, kinds: Kinds, data: st.DataObject
) -> None:
    dpu.assert_agrees(_draw(dpu, data, kinds), LEVELS[-1], squares.choose)


@settings(max_examples=10, deadline=None)
@given(data=st.data(), large=st.sampled_from([1e2, 1e4, 1e6]))
def test_an_outlier_with_zero_weights_does_not_lose_the_other_numbers(
    dpu: Any, data: st.DataObject, large: float
) -> None:
    tables = {"zero": None, "scale": "f32", "group": 0, "m": 5}
    depth = data.draw(st.sampled_from([17, 300]))
    workload = data.draw(dpu.plain(("f32", "i8", "f32"), k=depth, **tables))
    place = data.draw(st.integers(0, depth - 1))
    workload.operands["act"].view(np.float32).reshape(-1, depth)[:, place] = large
    workload.operands["weight"].reshape(-1, depth)[:, place] = 0
    dpu.assert_agrees(workload, LEVELS[-1], squares.choose)


@settings(max_examples=9, deadline=None)
@given(data=st.data(), seed=st.integers(0, 1 << 30))
def test_nonfinite_activations_propagate(dpu: Any, data: st.DataObject, seed: int) -> None:
    workload = _draw(dpu, data, KINDS[3])
    workload.registers["alpha"] = 1.0
    dpu.sprinkle(workload, np.random.default_rng(seed))
    dpu.assert_agrees(workload, LEVELS[-1], squares.choose)


def _family(kinds: tuple[str, str], rows: int, group: int, host: Host) -> str:
    act, weight = (ELEMENT_TYPES[kind].code for kind in kinds)
    problem = MatmulProblem(
        act=act,
        weight=weight,
        out=DType.FP16,
        scale=DType.UNSET,
        zero=DType.UNSET,
        row_scales=False,
        accumulate=False,
        layout=WeightLayout.K,
        rows=rows,
        group=group,
    )
    return choose(problem, host).spec.key.split()[1]


@pytest.mark.parametrize(
    ("weight", "group", "few"),
    [("u8", 0, "gemv"), ("u4", 64, "lookups"), ("u4", 32, "lookups"), ("f16", 0, "gemv")],
)
def test_weights_are_packed_for_many_rows_only(weight: str, group: int, few: str) -> None:
    host = detect(min(LEVELS[-1], Isa.AVX512))
    more = "squares" if (weight, group) in {("u8", 0), ("u4", 64)} else few
    families = [_family(("f16", weight), rows, group, host) for rows in range(3, 17)]
    assert families == [few] * 2 + [more] * 12
    assert _family(("f16", weight), MANY_ROWS, group, host) == "gemm"
