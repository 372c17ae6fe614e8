"""What copies from the host's memory to the device's cost.

An NPU of a system on chip has no memory of its own: "host" and "device" memory are both in its DDR,
and a copy is one of its transfers, which reads and writes DDR. A device with memory of its own is
reached by a link; then a copy takes what the link takes, and only writes DDR.

Source: for the first, ``abi.cost.dma``. For the second ``host_link_mb_per_s``, which is 0 for all
platforms here; a card on PCIe 4.0 x4 has 7877 (16 GT/s · 4 lanes · 128/130 / 8, PCI Express base
specification 4.0; what is left of that after packets' headers is less).
"""

from __future__ import annotations

from driver_layer.abi.cost.dma import Space, dma_ns
from driver_layer.abi.platforms import Platform


def host_copy_ns(platform: Platform, nbytes: int) -> float:
    """Give the time of a copy that has the device for itself, in ns."""
    alone = dma_ns(platform, nbytes, Space.DDR, Space.DDR)
    if not platform.host_link_mb_per_s:
        return alone
    return max(alone, nbytes * 1000 / platform.host_link_mb_per_s)


def host_copy_ddr_bytes(platform: Platform, nbytes: int) -> int:
    """Give what a copy takes of the bandwidth of the device's memory, in bytes."""
    return nbytes if platform.host_link_mb_per_s else 2 * nbytes
