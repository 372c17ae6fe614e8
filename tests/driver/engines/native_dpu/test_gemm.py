"""Matmuls of many rows, or with weights along n."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.engines.native.jit.host import Isa, native_isa

KINDS = [
    ("f16", "u8", "f16", {"zero": "u8", "scale": "f16"}),
    ("f16", "u4", "f16", {"zero": "u8", "scale": "f16"}),
    ("f16", "f16", "f32", {}),
    ("f32", "f32", "f32", {}),
    ("bf16", "bf16", "f32", {}),
    ("bf16", "u8", "bf16", {"zero": "u8", "scale": "bf16"}),
    ("bf16", "i4", "bf16", {"zero": None, "scale": "f32"}),
    ("i8", "i8", "f32", {"zero": None, "scale": "f32"}),
    ("u8", "u8", "f16", {"zero": "u8", "scale": "f16"}),
    ("i8", "u8", "f16", {"zero": "u8", "scale": None, "act_zero": 255}),
    ("i8", "i4", "f32", {"zero": "i8", "scale": "f32"}),
]
VECTORS = min(native_isa(), Isa.AVX512)
"""Highest level without tile registers, which have separate kernels (test_tiles.py)."""
LOWER = [isa for isa in Isa if Isa.PORTABLE <= isa < VECTORS]

Kinds = tuple[str, str, str, dict[str, Any]]


def _named(kinds: Kinds) -> str:
    return "-".join(kinds[:3])


def _check(dpu: Any, isa: Isa, kinds: Kinds, data: st.DataObject) -> None:
    fixed = kinds[3] | {
        "layout": data.draw(st.sampled_from(["k", "k", "n"])),
        "m": data.draw(st.sampled_from([9, 40])),
        "group": data.draw(st.sampled_from([0, 0, 128, 64, 32, 6])),
    }
    dpu.assert_agrees(data.draw(dpu.workloads(kinds[:3], **fixed)), isa)


@pytest.mark.matrix
@pytest.mark.parametrize("kinds", KINDS, ids=_named)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_many_rows_agree_with_the_reference(dpu: Any, kinds: Kinds, data: st.DataObject) -> None:
    _check(dpu, VECTORS, kinds, data)


@pytest.mark.matrix
@pytest.mark.parametrize("isa", LOWER, ids=lambda isa: isa.name.lower())
@pytest.mark.parametrize("kinds", [KINDS[0], KINDS[1], KINDS[4], KINDS[8]], ids=_named)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_many_rows_agree_with_the_reference_on_lower_levels(
    dpu: Any, isa: Isa, kinds: Kinds, data: st.DataObject
) -> None:
    _check(dpu, isa, kinds, data)


@pytest.mark.matrix
@pytest.mark.parametrize("kinds", [KINDS[0], KINDS[1], KINDS[5], KINDS[7], KINDS[8]], ids=_named)
@pytest.mark.parametrize("group", [0, 64])
def test_sizes_beyond_one_tile_and_one_block(dpu: Any, kinds: Kinds, group: int) -> None:
    k = 1030 if kinds[0] in ("i8", "u8") else 525

    @settings(max_examples=1, deadline=None, database=None)
    @given(workload=dpu.plain(kinds[:3], m=137, n=205, k=k, group=group, **kinds[3]))
    def check(workload: Any) -> None:
        assert "gemm" in dpu.assert_agrees(workload, VECTORS) or VECTORS < Isa.AVX512

    check()


@pytest.mark.parametrize("kinds", [KINDS[0], KINDS[5]], ids=_named)
def test_kept_weights_are_not_read_again(dpu: Any, kinds: Kinds) -> None:
    @settings(max_examples=2, deadline=None, database=None)
    @given(workload=dpu.plain(kinds[:3], m=20, n=205, k=600, group=0, **kinds[3]))
    def check(workload: Any) -> None:
        assert dpu.runs_again_without_weights(workload, VECTORS)

    check()
