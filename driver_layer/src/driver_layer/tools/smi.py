"""npu-smi: prints the properties of the simulated device.

Examples:
    npu-smi                        device of ZE_INTEL_NPU_PLATFORM_OVERRIDE, else the default
    npu-smi --platform 3720        another device
    npu-smi --json                 JSON, for scripts
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from driver_layer import ze
from driver_layer.errors import ZeError
from driver_layer.npu.memory import MemoryKind
from driver_layer.support.command import Command, run


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        0; 2 if the platform is unknown.
    """
    return run(_smi, argv, ZeError)


@click.command("npu-smi", cls=Command, help=__doc__)
@click.option("--platform", help="3720, 4000, 5010, a code name such as LUNARLAKE, or a .toml file")
@click.option("--json", "as_json", is_flag=True, help="print JSON")
def _smi(platform: str | None, as_json: bool) -> None:
    facts = describe(platform)
    print(json.dumps(facts, indent=2) if as_json else _table(facts))


def describe(platform: str | None = None) -> dict[str, Any]:
    """Return the properties of a simulated device.

    Raises:
        ZeError: the platform is unknown.
    """
    if platform is None:
        ze.zeInit(0)
        (driver,) = ze.zeDriverGet()
    else:
        driver = ze.simulated_driver(platform)
    (device,) = ze.zeDeviceGet(driver)
    properties = ze.zeDeviceGetProperties(device)
    (memory,) = ze.zeDeviceGetMemoryProperties(device)
    table = ze.zeDriverGetExtensionFunctionAddress(driver, ze.GRAPH_EXTENSION)
    graphs = table.pfnDeviceGetGraphProperties2(device)
    p = device.platform
    # int8: each multiply-accumulate is two operations.
    tops = p.tiles * p.macs_per_cycle * 2 * p.dpu_mhz / 1e6
    return {
        "name": properties.name,
        "platform": p.name,
        "architecture": p.arch.name,
        "pci_id": f"{properties.vendorId:04x}:{properties.deviceId:04x}",
        "device_uuid": properties.uuid,
        "driver_uuid": ze.zeDriverGetProperties(driver).uuid,
        "tiles": p.tiles,
        "shaves_per_tile": p.shaves_per_tile,
        "cmx_kib_per_tile": p.cmx_bytes >> 10,
        "cmx_kib_for_programs": p.workspace_bytes >> 10,
        "barriers": p.barriers_per_tile * p.tiles,
        "dma_ports": p.dma_ports,
        "dpu_mhz": p.dpu_mhz,
        "cmx_mhz": p.cmx_mhz,
        "int8_tops": round(tops, 1),
        "ddr_mb_per_s": memory.maxBandwidth,
        "memory_bytes": memory.totalSize,
        # A simulated device belongs to one process, so this is 0 when the tool runs by itself.
        "memory_in_use_bytes": sum(space.allocated_bytes for space in device.spaces),
        "memory_ranges": {
            kind.name: f"{kind.value.begin:#x}-{kind.value.end:#x}" for kind in MemoryKind
        },
        "level_zero": _version(ze.zeDriverGetApiVersion(driver)),
        "graph_extension": _version(graphs.graphExtensionVersion),
        "elf_abi": f"{graphs.elfVersion.major}.{graphs.elfVersion.minor}",
        "mapped_inference": f"{graphs.runtimeVersion.major}.{graphs.runtimeVersion.minor}",
    }


def _version(packed: int) -> str:
    return f"{packed >> 16}.{packed & 0xFFFF}"


def _table(facts: dict[str, Any]) -> str:
    rows = (
        ("Device", "{name} (simulated), platform {platform}, {architecture}"),
        ("PCI id", "{pci_id}"),
        ("UUID", "{device_uuid}"),
        ("Tiles", "{tiles}, each 1 DPU and {shaves_per_tile} SHAVE"),
        ("CMX", "{cmx_kib_per_tile} KiB per tile, {cmx_kib_for_programs} KiB for programs"),
        ("Barriers", "{barriers} physical"),
        ("DMA", "{dma_ports} ports"),
        ("Clocks", "DPU {dpu_mhz} MHz, CMX {cmx_mhz} MHz"),
        ("Peak", "{int8_tops} TOPS int8"),
        (
            "DDR",
            "{ddr_mb_per_s} MB/s, {memory_gib} GiB, "
            "{memory_in_use_bytes} bytes in use by this process",
        ),
        *((f"  {name}", span) for name, span in facts["memory_ranges"].items()),
        ("Level Zero", "{level_zero}, graph extension {graph_extension}"),
        ("Accepts", "ELF ABI {elf_abi}, mapped inference {mapped_inference}"),
    )
    values = facts | {"memory_gib": facts["memory_bytes"] >> 30}
    return "\n".join(f"{title:11} {text.format(**values)}" for title, text in rows)
