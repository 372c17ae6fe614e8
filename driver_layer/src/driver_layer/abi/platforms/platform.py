"""The numbers of one generation of the device.

Source tags, here and in the files: V = npu-nn-cost-model headers, C = npu_compiler sources,
D = linux-npu-driver device tables and firmware headers, E = npu_compiler_elf sources, A = assumed
by us; docs/reference/elf.md#version-notes, docs/reference/npu.md#platforms.
"""

from __future__ import annotations

from dataclasses import dataclass

from driver_layer.abi.metadata import ArchKind
from driver_layer.abi.notes import Version


@dataclass(frozen=True, slots=True)
class Platform:
    """One generation of the device; ``load_platform`` reads one from a file."""

    name: str
    """Name in NPU_PLATFORM and in Level Zero's device name."""
    arch: ArchKind
    device_id: int
    """PCI id."""
    loader_abi: Version
    """The ELF ABI of this generation's loader, written to and accepted from blobs."""
    mapped_inference: Version
    """Version of mapped inferences that the compiler writes: the oldest with all used features."""
    firmware_inference: Version
    """Newest version of mapped inferences that the firmware runs."""
    runtime_symbols: int
    """Size of the runtime's symbol table, to which relocations of CMX addresses link.

    0: no such table; relocations use the blob's symbol of a CMX section, and the loader replaces
    its address."""
    tiles: int
    """NCE tiles, each with one DPU and its CMX."""
    shaves_per_tile: int
    cmx_bytes: int
    """Addressable CMX per tile."""
    workspace_bytes: int
    """The part of a tile's CMX that the compiler may plan with."""
    macs_per_cycle: int
    """Int8 multiply-accumulates per DPU and cycle; f16 runs at half."""
    dpu_mhz: int
    """DPU clock."""
    cmx_mhz: int
    """Clock of CMX, DMA and SHAVE."""
    cmx_word_bytes: int
    """Bytes that one read port of CMX delivers to the DPU per CMX cycle."""
    cmx_read_ports: int
    cmx_latency_cycles: int
    """CMX cycles until a transfer's first byte."""
    shave_lanes: int
    """f16 elements per SHAVE and cycle."""
    shave_entry_cycles: int
    """CMX cycles of overhead of each call of a SHAVE program."""
    dma_ports: int
    dma_bytes_per_cycle: int
    """Bytes per port and CMX cycle."""
    ddr_mb_per_s: int
    """DDR bandwidth of all ports together, in millions of bytes."""
    ddr_latency_ns: int
    """Latency until a transfer's first byte."""
    ddr_post_cycles: int
    """CMX cycles to post a transfer to DDR, on top of its latency."""
    ddr_cmx_efficiency: float
    """The share of its width that the CMX side of a transfer from or to DDR achieves."""
    host_link_mb_per_s: int
    """Bandwidth between host and device memory, in millions of bytes; 0: both are in DDR."""
    barriers_per_tile: int
    """Physical barriers that a blob may use for each tile it uses."""
    timer_khz: int
    """Frequency of the profiling clock."""

    @property
    def tile_mask(self) -> int:
        """Mask with one bit set per tile."""
        return (1 << self.tiles) - 1
