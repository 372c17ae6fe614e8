"""Costs of copies from the host's memory: in the same DDR, or over a link."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driver_layer.abi.cost.dma import Space, dma_ns, host_copy_ddr_bytes, host_copy_ns
from driver_layer.abi.platforms import PLATFORMS

MIB = 1 << 20


@pytest.mark.parametrize("platform", PLATFORMS.values(), ids=list(PLATFORMS))
def test_without_a_link_a_copy_is_a_transfer_in_ddr(platform) -> None:
    assert platform.host_link_mb_per_s == 0
    assert host_copy_ns(platform, MIB) == dma_ns(platform, MIB, Space.DDR, Space.DDR)
    assert host_copy_ddr_bytes(platform, MIB) == 2 * MIB


def test_a_copy_is_bound_by_the_link_unless_the_device_is_slower() -> None:
    card = replace(PLATFORMS["4000"], host_link_mb_per_s=8000)
    assert host_copy_ns(card, 8_000_000) == 1_000_000
    assert host_copy_ddr_bytes(card, MIB) == MIB
    quick = replace(card, host_link_mb_per_s=10_000_000)
    assert host_copy_ns(quick, MIB) == dma_ns(quick, MIB, Space.DDR, Space.DDR)
