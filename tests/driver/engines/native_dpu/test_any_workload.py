"""Any workload, with the chosen kernel; on hosts without vectors, the generic one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.engines.native.jit.host import Isa, native_isa

LEVELS = [isa for isa in Isa if isa <= native_isa()]
ACTS = st.sampled_from(["f16", "bf16", "f32", "i8", "u8"])
WEIGHTS = st.sampled_from(["f16", "bf16", "f32", "i8", "u8", "i4", "u4", "f8e4m3", "f8e5m2"])
OUTS = st.sampled_from(["f16", "bf16", "f32"])


@pytest.mark.matrix
@pytest.mark.parametrize("isa", LEVELS, ids=lambda isa: isa.name.lower())
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_any_workload_agrees_with_the_reference(dpu: Any, isa: Isa, data: st.DataObject) -> None:
    act, weight, out = data.draw(ACTS), data.draw(WEIGHTS), data.draw(OUTS)
    if act in ("i8", "u8") and weight not in ("i8", "u8", "i4", "u4"):
        weight = "i8"
    dpu.assert_agrees(data.draw(dpu.workloads((act, weight, out))), isa)
