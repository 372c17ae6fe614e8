"""Matmuls of many rows in tile registers (AMX)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver_layer.engines.native.jit.host import Isa, native_isa

pytestmark = pytest.mark.skipif(native_isa() < Isa.AMX, reason="this machine has no tile registers")

KINDS = [
    ("f16", "u8", "f16", {"zero": "u8", "scale": "f16"}),
    ("f16", "i4", "f16", {"zero": None, "scale": "f16"}),
    ("f16", "f16", "f32", {}),
    ("f16", "bf16", "f16", {}),
    ("bf16", "bf16", "f32", {}),
    ("bf16", "f16", "bf16", {}),
    ("bf16", "u4", "bf16", {"zero": "u8", "scale": "bf16"}),
    ("i8", "i8", "f32", {"zero": None, "scale": "f32"}),
    ("u8", "u8", "f16", {"zero": "u8", "scale": "f16"}),
]

Kinds = tuple[str, str, str, dict[str, Any]]


def _named(kinds: Kinds) -> str:
    return "-".join(kinds[:3])


@pytest.mark.parametrize("kinds", KINDS, ids=_named)
@settings(max_examples=9, deadline=None)
@given(data=st.data())
def test_many_rows_agree_with_the_reference(dpu: Any, kinds: Kinds, data: st.DataObject) -> None:
    integers = kinds[0] in ("i8", "u8")
    fixed = kinds[3] | {
        "layout": data.draw(st.sampled_from(["k"] if integers else ["k", "k", "n"])),
        "m": data.draw(st.sampled_from([9, 16, 17, 40, 64])),
        "group": data.draw(st.sampled_from([0, 0, 128, 64, 32, 16, 2])),
    }
    used = dpu.assert_agrees(data.draw(dpu.workloads(kinds[:3], **fixed)), Isa.AMX)
    # A variant may have few rows, and weights may repeat along n.
    assert "tiles" in used or "generic" in used or fixed["m"] < 40, used


@pytest.mark.parametrize("kinds", KINDS, ids=_named)
@pytest.mark.parametrize("group", [0, 64])
@pytest.mark.parametrize("sizes", [(521, 33, 66), (64, 1050, 70), (40, 40, 1090)])
def test_sizes_beyond_one_block(
    dpu: Any, kinds: Kinds, group: int, sizes: tuple[int, int, int]
) -> None:
    m, n, k = sizes

    @settings(max_examples=1, deadline=None, database=None)
    @given(workload=dpu.plain(kinds[:3], m=m, n=n, k=k, group=group, **kinds[3]))
    def check(workload: Any) -> None:
        assert "tiles" in dpu.assert_agrees(workload, Isa.AMX)

    check()


@pytest.mark.parametrize(("act", "weight"), [("f16", "f16"), ("f16", "bf16"), ("bf16", "f16")])
def test_products_of_f16_are_exact(dpu: Any, act: str, weight: str) -> None:
    """Products of the bf16 parts are exact, and f32 holds their sum."""

    @settings(max_examples=3, deadline=None, database=None)
    @given(workload=dpu.plain((act, weight, "f32"), m=40, n=50, k=1, alpha=1.0, accumulate=False))
    def check(workload: Any) -> None:
        raw, used = workload.native(Isa.AMX)
        assert "tiles" in used
        expected = workload.values("act") @ workload.values("weight").swapaxes(1, 2)
        assert np.array_equal(raw.view("f4").reshape(expected.shape), expected)

    check()
