"""Infinite, NaN, huge and tiny values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.covering import beside_by_turns

from driver_layer.engines.native.jit.host import Isa, native_isa

LEVELS = sorted({Isa.SCALAR, Isa.PORTABLE, min(native_isa(), Isa.AVX512), native_isa()})
KINDS = [
    ("f16", "f16", "f16", {"alpha": 1.0}),
    ("f16", "bf16", "f32", {"alpha": 1.0}),
    ("bf16", "f16", "f32", {"alpha": 1.0}),
    ("bf16", "bf16", "bf16", {"alpha": 1.0}),
    ("f16", "f8e4m3", "f16", {"alpha": 1.0, "scale": None, "group": 0}),
    ("bf16", "f8e5m2", "f32", {"alpha": 1.0, "scale": None, "group": 0}),
    ("f16", "u8", "f16", {"alpha": 1.0, "zero": "u8", "scale": "f16", "group": 0}),
]


def _named(case: Isa | tuple[str, str, str, dict[str, Any]]) -> str:
    return case.name.lower() if isinstance(case, Isa) else "-".join(case[:3])


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("isa", "kinds"), beside_by_turns([*LEVELS, *LEVELS, *LEVELS], KINDS), ids=_named
)
@settings(max_examples=9, deadline=None)
@given(data=st.data(), seed=st.integers(0, 1 << 30))
def test_nonfinite_values_propagate(
    dpu: Any, isa: Isa, kinds: tuple[str, str, str, dict[str, Any]], data: st.DataObject, seed: int
) -> None:
    layout = data.draw(st.sampled_from(["k", "n"]))
    m = data.draw(st.sampled_from([1, 9]))
    workload = data.draw(dpu.workloads(kinds[:3], m=m, layout=layout, **kinds[3]))
    dpu.sprinkle(workload, np.random.default_rng(seed))
    dpu.assert_agrees(workload, isa)
