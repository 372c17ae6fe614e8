"""Matmuls of few rows: gemv for weights along k, axpy for weights along n."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.engines.native.jit.host import Isa, native_isa

LOWER = [isa for isa in Isa if Isa.PORTABLE <= isa < native_isa()]
KINDS = [
    ("f16", "u8", "f16", {"zero": "u8", "scale": "f16"}),
    ("f16", "i8", "f32", {"zero": None, "scale": "f16"}),
    ("f16", "u4", "f16", {"zero": "u8", "scale": "f16"}),
    ("bf16", "i4", "bf16", {"zero": None, "scale": "f32"}),
    ("f16", "f16", "f32", {}),
    ("bf16", "bf16", "f32", {}),
    ("f32", "f32", "f32", {}),
]


Kinds = tuple[str, str, str, dict[str, Any]]


def _named(kinds: Kinds) -> str:
    return "-".join(kinds[:3])


def _check(dpu: Any, isa: Isa, kinds: Kinds, data: st.DataObject) -> None:
    fixed = kinds[3] | {
        "layout": data.draw(st.sampled_from(["k", "k", "n"])),
        "m": data.draw(st.sampled_from([1, 2, 3, 4, 7, 14])),
        "group": data.draw(st.sampled_from([0, 0, 128, 64, 32, 12])),
    }
    dpu.assert_agrees(data.draw(dpu.workloads(kinds[:3], **fixed)), isa)


@pytest.mark.matrix
@pytest.mark.parametrize("kinds", KINDS, ids=_named)
@settings(max_examples=9, deadline=None)
@given(data=st.data())
def test_few_rows_agree_with_the_reference(dpu: Any, kinds: Kinds, data: st.DataObject) -> None:
    _check(dpu, native_isa(), kinds, data)


@pytest.mark.matrix
@pytest.mark.parametrize("isa", LOWER, ids=lambda isa: isa.name.lower())
@pytest.mark.parametrize("kinds", [KINDS[0], KINDS[2], KINDS[5]], ids=_named)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_few_rows_agree_with_the_reference_on_lower_levels(
    dpu: Any, isa: Isa, kinds: Kinds, data: st.DataObject
) -> None:
    _check(dpu, isa, kinds, data)
