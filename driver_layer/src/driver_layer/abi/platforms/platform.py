"""The numbers of one generation of the device, and reading them from a TOML file.

The file has exactly one key per field of ``Platform``.

Source tags, here and in the files: V = npu-nn-cost-model headers, C = npu_compiler sources,
D = linux-npu-driver device tables and firmware headers, E = npu_compiler_elf sources, A = assumed
by us; docs/reference/elf.md#version-notes, docs/reference/npu.md#platforms.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from os import PathLike
from typing import Any, get_type_hints

from driver_layer.abi.metadata import ArchKind
from driver_layer.abi.notes import Version
from driver_layer.abi.platforms.cmx_map import TILE_OFFSET_MASK
from driver_layer.abi.tasks import MAX_PHYSICAL_BARRIERS, MAX_TILES
from driver_layer.errors import PlatformError
from driver_layer.support.files import read_regular


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


_KINDS: dict[str, type] = get_type_hints(Platform)

_MAY_BE_ZERO = {
    "cmx_latency_cycles",
    "ddr_latency_ns",
    "ddr_post_cycles",
    "host_link_mb_per_s",
    "runtime_symbols",
    "shave_entry_cycles",
}


def load_platform(path: str | PathLike[str]) -> Platform:
    """Read a platform from a file, e.g. a modified copy of a file of this package.

    Raises:
        PlatformError: the file cannot be read, is not TOML, lacks a key, has an unknown key, or a
            value of a wrong type or out of range; the error names file and key.
    """
    try:
        content = read_regular(path)
    except OSError as error:
        raise PlatformError(error.strerror or str(error), str(path)) from None
    except ValueError as error:  # e.g. a null character
        raise PlatformError(str(error), ascii(str(path))) from None
    return parse_platform(content, str(path))


def parse_platform(content: bytes, file: str) -> Platform:
    """Parse the content of a platform's file; raises as ``load_platform``."""
    try:
        table = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlatformError(f"not a TOML file: {error}", file) from None
    for key in table:
        if key not in _KINDS:
            raise PlatformError(f"unknown key; the keys are {', '.join(_KINDS)}", file, key)
    values = {key: _value(key, table, file) for key in _KINDS}
    platform = Platform(**values)
    _check_limits(platform, file)
    return platform


def _value(key: str, table: dict[str, Any], file: str) -> Any:
    """Return the value of a key, checked and converted to the type of its field."""
    if key not in table:
        raise PlatformError("missing", file, key)
    value, kind = table[key], _KINDS[key]
    if kind is ArchKind:
        known = list(ArchKind.__members__)
        if value not in known:
            raise PlatformError(f"{value!r} is not one of {', '.join(known)}", file, key)
        return ArchKind[value]
    if kind is Version:
        version = Version.parse(value) if type(value) is str else None
        if version is None or not version.major:
            raise PlatformError(f"{value!r} is not a version, e.g. 1.2.7", file, key)
        return version
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:  # not isinstance: true is not a number
        raise PlatformError(f"{value!r} is not of type {kind.__name__}", file, key)
    if kind is not str and not (value > 0 or (value == 0 and key in _MAY_BE_ZERO)):
        raise PlatformError(f"{value} is not positive", file, key)
    return value


def _check_limits(platform: Platform, file: str) -> None:
    """Check the limits that the formats of task lists set."""
    if platform.tiles > MAX_TILES:
        raise PlatformError(f"{platform.tiles}; a blob can address {MAX_TILES}", file, "tiles")
    if platform.dma_ports > MAX_TILES:
        raise PlatformError(f"{platform.dma_ports}; a blob has {MAX_TILES}", file, "dma_ports")
    if platform.cmx_bytes > TILE_OFFSET_MASK + 1:
        raise PlatformError("more than a tile's address range holds", file, "cmx_bytes")
    if platform.workspace_bytes > platform.cmx_bytes:
        raise PlatformError("more than cmx_bytes", file, "workspace_bytes")
    if platform.barriers_per_tile * platform.tiles > MAX_PHYSICAL_BARRIERS:
        raise PlatformError(
            f"{platform.barriers_per_tile} for each of {platform.tiles} tiles; task lists can "
            f"address {MAX_PHYSICAL_BARRIERS} in total",
            file,
            "barriers_per_tile",
        )
    if platform.ddr_cmx_efficiency > 1:
        raise PlatformError(f"{platform.ddr_cmx_efficiency} > 1", file, "ddr_cmx_efficiency")
