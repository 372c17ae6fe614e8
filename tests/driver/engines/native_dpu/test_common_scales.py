"""Weights with one scale for each k, which all columns share, as the rows of an 8-bit V cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.engines.native.jit.host import Isa, native_isa

LEVELS = [isa for isa in Isa if Isa.SCALAR < isa <= native_isa()]
KINDS = st.sampled_from(
    [("f16", "i8", "f16"), ("f16", "u8", "f32"), ("bf16", "i8", "bf16"), ("f32", "i8", "f32")]
)
SHARED = {"common_scales": True, "scale": "f16", "zero": None, "group": 1}


def _named(isa: Isa) -> str:
    return isa.name.lower()


@pytest.mark.matrix
@pytest.mark.parametrize("isa", LEVELS[::-1], ids=_named)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_any_number_of_rows_agrees_with_the_reference(
    dpu: Any, isa: Isa, data: st.DataObject
) -> None:
    layout, m = data.draw(st.sampled_from(["n", "k"])), data.draw(st.sampled_from([1, 3, 8, 40]))
    fixed = SHARED | {"layout": layout, "m": m, "n": data.draw(st.sampled_from([5, 64, 100]))}
    fixed["k"] = data.draw(st.sampled_from([2, 17, 64, 300]))
    used = dpu.assert_agrees(data.draw(dpu.workloads(data.draw(KINDS), **fixed)), isa)
    assert ".k " in used, used
    assert "generic" not in used, used


@pytest.mark.matrix
@pytest.mark.parametrize("isa", [isa for isa in LEVELS if isa < Isa.AMX], ids=_named)
@pytest.mark.parametrize("m", [4, 40])
def test_scaled_products_of_f16_are_exact(dpu: Any, isa: Isa, m: int) -> None:
    """Rows of activations with one number that is not 0, so that nothing is summed."""

    @settings(max_examples=3, deadline=None, database=None)
    @given(
        workload=dpu.workloads(
            ("f16", "i8", "f32"),
            **(SHARED | {"plain": True, "batch": 1, "alpha": 1.0, "accumulate": False}),
            **{"m": m, "n": 50, "k": 130, "layout": "n"},
        )
    )
    def check(workload: Any) -> None:
        act = workload.operands["act"].view(np.float16).reshape(m, -1)
        act[~np.eye(*act.shape, dtype=bool)] = 0
        raw, _ = workload.native(isa)
        weight = workload.values("weight") * workload.values("scale")
        expected = (workload.values("act") @ weight.swapaxes(1, 2)).astype(np.float32)
        assert np.array_equal(raw.view("f4").reshape(expected.shape), expected)

    check()


@pytest.mark.parametrize("layout", ["n", "k"])
def test_sizes_beyond_one_tile_and_one_block(dpu: Any, layout: str) -> None:
    @settings(max_examples=1, deadline=None, database=None)
    @given(
        workload=dpu.workloads(
            ("f16", "i8", "f16"),
            **(
                SHARED | {"plain": True, "batch": 1, "m": 137, "n": 205, "k": 525, "layout": layout}
            ),
        )
    )
    def check(workload: Any) -> None:
        dpu.assert_agrees(workload, native_isa())

    check()
