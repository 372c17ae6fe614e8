"""The cost of DMA transfers, and of copies from the host's memory to the device's.

    ns = max(latency of both sides) + max(time to read, time to write)

Each side moves complete words of the port's width (A), so a run of a few bytes takes as long as a
word: rows of 2 bytes cost a cycle per element, as the public model states for permuting transfers.
A write to several tiles together takes as long as a write to one.

Source: docs/reference/npu.md#dma-cost.

An NPU of a system on chip has no separate memory: "host" and "device" memory are both in its DDR,
and a copy is a DMA transfer, which reads and writes DDR. A device with its own memory is attached
by a link; then a copy takes as long as the link needs, and only writes DDR.

Source of ``host_link_mb_per_s``: it is 0 for all platforms here; a card on PCIe 4.0 x4 has 7877 (16
GT/s · 4 lanes · 128/130 / 8, PCI Express base specification 4.0; packet headers are not deducted).
"""

from __future__ import annotations

from enum import Enum

from driver_layer.abi.platforms import Platform


class Space(Enum):
    """Memory of one side of a transfer."""

    DDR = "DDR"
    CMX = "CMX"


def dma_ns(
    platform: Platform,
    nbytes: int,
    source: Space | None,
    target: Space,
    source_run: int | None = None,
    target_run: int | None = None,
) -> float:
    """Return the duration of a transfer without contention, in ns.

    Args:
        platform: the device.
        nbytes: number of bytes moved.
        source: memory of the source; None for a fill, which reads nothing.
        target: memory of the target.
        source_run: contiguous bytes at the source; all of them if not given.
        target_run: contiguous bytes at the target; all of them if not given.
    """
    latency = dma_latency_ns(platform, source, target)
    return latency + dma_busy_ns(platform, nbytes, source, target, source_run, target_run)


def dma_latency_ns(platform: Platform, source: Space | None, target: Space) -> float:
    """Return the latency until the first byte moves, in ns; it occupies no DDR bandwidth."""
    return max(_latency_ns(platform, side) for side in (source, target) if side is not None)


def dma_busy_ns(
    platform: Platform,
    nbytes: int,
    source: Space | None,
    target: Space,
    source_run: int | None = None,
    target_run: int | None = None,
) -> float:
    """Return the time from the first byte to the last, in ns; arguments as for ``dma_ns``."""
    mixed = source is not None and source is not target
    sides = (
        [(target, target_run)] if source is None else [(source, source_run), (target, target_run)]
    )
    cycles = max(
        padded_bytes(platform, nbytes, run) / _bytes_per_cycle(platform, side, mixed)
        for side, run in sides
    )
    return cycles * 1000 / platform.cmx_mhz


def padded_bytes(platform: Platform, nbytes: int, run: int | None = None) -> int:
    """Return the bytes that a side moves, each run rounded up to complete words."""
    run = nbytes if run is None else run
    if not run:
        return 0
    word = platform.dma_bytes_per_cycle
    whole, rest = divmod(nbytes, run)
    return (whole * -(-run // word) + -(-rest // word)) * word


def ddr_bytes_per_ns(platform: Platform) -> float:
    """Return the DDR bandwidth of all ports together, in bytes per ns."""
    return platform.ddr_mb_per_s / 1000


def _latency_ns(platform: Platform, side: Space) -> float:
    cycle = 1000 / platform.cmx_mhz
    if side is Space.CMX:
        return platform.cmx_latency_cycles * cycle
    return platform.ddr_latency_ns + platform.ddr_post_cycles * cycle


def _bytes_per_cycle(platform: Platform, side: Space, mixed: bool) -> float:
    """Return a side's bandwidth for one port.

    Unlike in the public model, the DDR bytes per cycle are not rounded down, as rounding could make
    a transfer slower with a faster CMX clock. The difference is 2.5 % on 3720, none on the others.
    """
    port = platform.dma_bytes_per_cycle
    if side is Space.DDR:
        return min(platform.ddr_mb_per_s / platform.cmx_mhz, port)
    return port * platform.ddr_cmx_efficiency if mixed else port


def host_copy_ns(platform: Platform, nbytes: int) -> float:
    """Return the duration of a copy from the host without contention, in ns."""
    alone = dma_ns(platform, nbytes, Space.DDR, Space.DDR)
    if not platform.host_link_mb_per_s:
        return alone
    return max(alone, nbytes * 1000 / platform.host_link_mb_per_s)


def host_copy_ddr_bytes(platform: Platform, nbytes: int) -> int:
    """Return the bytes that a copy from the host moves in the device's memory."""
    return nbytes if platform.host_link_mb_per_s else 2 * nbytes
