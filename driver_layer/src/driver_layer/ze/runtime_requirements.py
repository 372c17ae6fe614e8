"""Runtime requirements of graphs, as texts that callers store beside a blob.

The text has the attributes of a compatibility string: generation, tiles, versions of the blob.

Source: Level Zero core specification 1.17, runtime requirements;
docs/reference/elf.md#compatibility-string.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from driver_layer.abi.notes import (
    NT_LOADER_ABI_VERSION,
    NT_MAPPED_INFERENCE_VERSION,
    Version,
)
from driver_layer.abi.platforms import Platform
from driver_layer.loader.metadata import read_version
from driver_layer.ze.calls import checked
from driver_layer.ze.driver import ze_device_handle_t
from driver_layer.ze.graph import ze_graph_handle_t

_KEY = "INTEL.L0.NPU"


class ze_validate_runtime_requirements_result_t(IntEnum):
    """Result of a validation."""

    ZE_VALIDATE_RUNTIME_REQUIREMENTS_RESULT_NOT_APPLICABLE = 0
    ZE_VALIDATE_RUNTIME_REQUIREMENTS_RESULT_REQUIREMENTS_MET = 1
    ZE_VALIDATE_RUNTIME_REQUIREMENTS_RESULT_REQUIREMENTS_MET_RECOMPILATION_ADVISABLE = 2
    ZE_VALIDATE_RUNTIME_REQUIREMENTS_RESULT_REQUIREMENTS_NOT_MET = 3


_NOT_APPLICABLE, _MET, _, _NOT_MET = ze_validate_runtime_requirements_result_t


@dataclass(frozen=True, slots=True)
class ze_runtime_requirements_graph_desc_t:
    """Graph whose requirements are requested."""

    requirementsSrc: ze_graph_handle_t


@dataclass(frozen=True, slots=True)
class ze_validate_runtime_requirements_output_t:
    """Result of a validation."""

    result: ze_validate_runtime_requirements_result_t


@checked
def zeDeviceGetRuntimeRequirements(
    hDevice: ze_device_handle_t, pObjDesc: ze_runtime_requirements_graph_desc_t
) -> str:
    """Return the requirements of a graph, e.g. ``npu=4000;t=6;elf=1.2.7;mi=11.4.10``."""
    graph = pObjDesc.requirementsSrc
    elf, inference = (
        read_version(graph.blob, kind)
        for kind in (NT_LOADER_ABI_VERSION, NT_MAPPED_INFERENCE_VERSION)
    )
    name = graph.context.device.platform.name
    return f"npu={name};t={graph.metadata.tile_count};elf={elf};mi={inference}"


@checked
def zeDeviceGetRuntimeRequirementsKey(hDevice: ze_device_handle_t) -> str:
    """Return the name of the producer of requirements."""
    return _KEY


@checked
def zeDeviceValidateRuntimeRequirements(
    hDevice: ze_device_handle_t, pRequirements: str
) -> ze_validate_runtime_requirements_output_t:
    """Return whether a device meets requirements; those of another generation do not apply.

    Requirements in another form than that of zeDeviceGetRuntimeRequirements do not apply, either.
    """
    return ze_validate_runtime_requirements_output_t(_verdict(pRequirements, hDevice.platform))


def _verdict(text: str, platform: Platform) -> ze_validate_runtime_requirements_result_t:
    pairs = [part.partition("=") for part in text.split(";")]
    values = {name: value for name, _, value in pairs}
    if len(values) != len(pairs) or values.keys() != {"npu", "t", "elf", "mi"}:
        return _NOT_APPLICABLE
    elf, inference = Version.parse(values["elf"]), Version.parse(values["mi"])
    tiles = values["t"]
    if elf is None or inference is None or not (tiles.isascii() and tiles.isdigit()):
        return _NOT_APPLICABLE
    if values["npu"] != platform.name:
        return _NOT_APPLICABLE
    met = (
        len(tiles) < 4
        and int(tiles) <= platform.tiles
        and platform.loader_abi.accepts(elf)
        and platform.firmware_inference.accepts(inference)
    )
    return _MET if met else _NOT_MET
