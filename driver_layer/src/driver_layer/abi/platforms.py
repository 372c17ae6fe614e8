"""The NPU generations, as a table.

Clocks are what the public cost model plans with; real parts run from 1.16 to 1.95 GHz.

Source: V = npu-nn-cost-model headers, C = npu_compiler sources, D = linux-npu-driver device
tables; fact sheets elf_driver §6.1 and simulators_npu §c.
"""

from __future__ import annotations

from dataclasses import dataclass

from driver_layer.abi.metadata import ArchKind

CMX_BASE = 0x40000000
"""Where CMX begins in the device's address space (C)."""

TILE_SELECT_SHIFT = 21
"""Address bits 21 to 26 select tiles, one bit each; several bits make a DMA write to them all (C).

Tile 0 is therefore at 0x40200000, tile 1 at 0x40400000, tile 2 at 0x40800000."""

TILE_SELECT_MASK = 0x3F << TILE_SELECT_SHIFT
TILE_OFFSET_MASK = (1 << TILE_SELECT_SHIFT) - 1

CMX_WORKSPACE_OFFSET = 0x18000
"""Where a tile's data region begins; SHAVE stacks and descriptors lie below it (C)."""

CMX_METADATA_OFFSET = 0x3C00
"""Where a tile's task descriptors lie (C)."""


def tile_base(tile: int) -> int:
    """Give the address of a tile's CMX."""
    return CMX_BASE | 1 << (TILE_SELECT_SHIFT + tile)


CMX_WORKSPACE_ADDRESS = tile_base(0) + CMX_WORKSPACE_OFFSET
CMX_METADATA_ADDRESS = tile_base(0) + CMX_METADATA_OFFSET


@dataclass(frozen=True, slots=True)
class Platform:
    """One generation of the device."""

    name: str
    """As in NPU_PLATFORM and in Level Zero's device name."""
    arch: ArchKind
    device_id: int
    """PCI id (D)."""
    tiles: int
    """NCE tiles, each with one DPU and its CMX (C, D)."""
    shaves_per_tile: int
    cmx_bytes: int
    """CMX per tile as addressed (C)."""
    workspace_bytes: int
    """The part of a tile's CMX that the compiler may plan with (C)."""
    macs_per_cycle: int
    """Int8 multiply-accumulates per DPU and cycle; f16 runs at half (V)."""
    dpu_mhz: int
    """DPU clock (V)."""
    cmx_mhz: int
    """Clock of CMX, DMA and SHAVE (V)."""
    shave_lanes: int
    """f16 elements per SHAVE and cycle (V)."""
    dma_ports: int
    dma_bytes_per_cycle: int
    """Per port and CMX cycle (V)."""
    ddr_mb_per_s: int
    ddr_latency_ns: int
    cmx_latency_cycles: int
    barriers_per_tile: int
    """Physical barriers that a blob may use for each tile it uses (C)."""
    timer_khz: int
    """The profiling clock (V, D)."""

    @property
    def tile_mask(self) -> int:
        """One bit per tile."""
        return (1 << self.tiles) - 1


PLATFORMS: dict[str, Platform] = {
    platform.name: platform
    for platform in (
        Platform(
            name="3720",
            arch=ArchKind.VPUX37XX,
            device_id=0x7D1D,
            tiles=2,
            shaves_per_tile=2,
            cmx_bytes=2 << 20,
            workspace_bytes=1936 << 10,
            macs_per_cycle=2048,
            dpu_mhz=1300,
            cmx_mhz=975,
            shave_lanes=8,
            dma_ports=2,
            dma_bytes_per_cycle=32,
            ddr_mb_per_s=27000,
            ddr_latency_ns=956,
            cmx_latency_cycles=16,
            barriers_per_tile=32,
            timer_khz=38400,
        ),
        Platform(
            name="4000",
            arch=ArchKind.VPUX40XX,
            device_id=0x643E,
            tiles=6,
            shaves_per_tile=2,
            cmx_bytes=2 << 20,
            workspace_bytes=1439 << 10,
            macs_per_cycle=2048,
            dpu_mhz=1700,
            cmx_mhz=971,
            shave_lanes=32,
            dma_ports=2,
            dma_bytes_per_cycle=64,
            ddr_mb_per_s=136000,
            ddr_latency_ns=300,
            cmx_latency_cycles=32,
            barriers_per_tile=16,
            timer_khz=19200,
        ),
        Platform(
            name="5010",
            arch=ArchKind.NPU5010,
            device_id=0xB03E,
            tiles=3,
            shaves_per_tile=2,
            cmx_bytes=2 << 20,
            workspace_bytes=1439 << 10,
            macs_per_cycle=4096,
            dpu_mhz=1950,
            cmx_mhz=1114,
            shave_lanes=32,
            dma_ports=2,
            dma_bytes_per_cycle=64,
            ddr_mb_per_s=136000,
            ddr_latency_ns=300,
            cmx_latency_cycles=32,
            barriers_per_tile=16,
            timer_khz=19200,
        ),
    )
}
"""The platforms by name."""

DEFAULT_PLATFORM = "4000"
