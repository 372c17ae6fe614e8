"""Weights in several parts along k, with the same bits as weights in one part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.engines.native.jit.host import Isa, native_isa

LEVELS = [isa for isa in Isa if Isa.SCALAR < isa <= native_isa()]
KINDS = st.sampled_from([("f16", "f16", "f16"), ("f16", "i8", "f16"), ("bf16", "u8", "f32")])
DEPTHS = st.sampled_from([1, 2, 17, 64, 130, 300])
WIDTHS = st.sampled_from([2, 5, 16, 64, 100])


@pytest.mark.matrix
@pytest.mark.parametrize("isa", LEVELS, ids=lambda isa: isa.name.lower())
@settings(max_examples=15, deadline=None)
@given(data=st.data(), cuts=st.lists(st.floats(0, 1), max_size=3))
def test_each_part_continues_the_sums_of_the_previous_one(
    dpu: Any, isa: Isa, data: st.DataObject, cuts: list[float]
) -> None:
    k, m, n = data.draw(DEPTHS), data.draw(st.integers(1, 8)), data.draw(WIDTHS)
    group = data.draw(st.sampled_from([0, 1, 5, 16]))
    fixed = {"plain": True, "layout": "n", "batch": 1, "group": group}
    if group == 1 and data.draw(st.booleans()):
        fixed |= {"common_scales": True, "scale": "f16", "zero": None}
    workload = data.draw(dpu.workloads(data.draw(KINDS), m=m, n=n, k=k, **fixed))
    expected, _ = workload.native(isa)
    tables = bool(workload.registers["scale_type"] or workload.registers["zero_type"])
    step = min(group or k, k) if tables else 1
    borders = sorted({0, k, *(int(cut * k) // step * step for cut in cuts)})
    paddings = [data.draw(st.integers(0, 3)) for _ in borders[1:]]
    found = dpu.in_parts(workload, isa, borders, paddings)
    assert np.array_equal(found, expected)
