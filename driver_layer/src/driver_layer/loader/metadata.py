"""What a blob says about itself: NETDESC, PLATFORM_INFO and the version notes as plain objects.

Source: fact sheet elf_driver §1.6, §1.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from driver_layer.abi import metadata as abi
from driver_layer.abi.dtypes import BY_CODE, ElementType
from driver_layer.abi.elf import SectionType
from driver_layer.abi.layout import Record, RecordArray, read_text
from driver_layer.abi.notes import NOTE, NOTE_OWNER, Version
from driver_layer.errors import SectionError
from driver_layer.loader.read import Blob, Section


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output as the device has it."""

    name: str
    element: ElementType
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of a dense tensor."""
        count = 1
        for dim in self.shape:
            count *= dim
        return -(-count * self.element.bits // 8)


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A parameter or result of the OpenVINO model."""

    friendly_name: str
    tensor_names: tuple[str, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NetworkMetadata:
    """The NETDESC section."""

    arch_name: str
    blob_name: str
    slice_length: int
    tile_count: int
    barriers: int
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    parameters: tuple[NodeInfo, ...]
    results: tuple[NodeInfo, ...]


def the_section(blob: Blob, kind: SectionType) -> Section:
    """Give the one section of a type.

    Raises:
        SectionError: there is none, or more than one.
    """
    found = blob.of_type(kind)
    if len(found) != 1:
        raise SectionError(f"a blob has exactly one, this has {len(found)}", kind.name, 0)
    return found[0]


_known: WeakKeyDictionary[Blob, NetworkMetadata] = WeakKeyDictionary()


def read_network(blob: Blob) -> NetworkMetadata:
    """Read the NETDESC section, once for each blob.

    Raises:
        SectionError: it is missing or malformed.
    """
    found = _known.get(blob)
    if found is None:
        found = _known[blob] = _read_network(blob)
    return found


def _read_network(blob: Blob) -> NetworkMetadata:
    section = the_section(blob, SectionType.VPU_SHT_NETDESC)
    arrays = _containers(section, [kind for _, kind in abi.NETWORK_METADATA])
    names = [name for name, _ in abi.NETWORK_METADATA]
    by_name = dict(zip(names, arrays, strict=True))
    identification = _one(section, by_name["identification"])
    resources = _one(section, by_name["resource_requirements"])
    return NetworkMetadata(
        arch_name=read_text(identification["arch_name"]),
        blob_name=read_text(identification["blob_name"]),
        slice_length=int(resources["slice_length"]),
        tile_count=int(resources["tile_count"]),
        barriers=int(resources["barriers"]),
        inputs=_tensors(section, by_name["in_tensor_descriptors"]),
        outputs=_tensors(section, by_name["out_tensor_descriptors"]),
        parameters=_nodes(section, by_name["ov_parameters"]),
        results=_nodes(section, by_name["ov_results"]),
    )


def read_arch(blob: Blob) -> int:
    """Read which generation a blob is for (``abi.metadata.ArchKind``).

    Raises:
        SectionError: PLATFORM_INFO is missing or malformed.
    """
    section = the_section(blob, SectionType.VPU_SHT_PLATFORM_INFO)
    (info,) = _containers(section, [abi.PLATFORM_INFO])
    return int(_one(section, info)["arch_kind"])


def read_version(blob: Blob, kind: int) -> Version:
    """Read one version note.

    Raises:
        SectionError: a note is malformed, or not exactly one is of this type.
    """
    found: list[Version] = []
    for section in blob.of_type(SectionType.SHT_NOTE):
        if section.size != NOTE.itemsize:
            raise SectionError(f"a note of {section.size} bytes", section.name, 0)
        note = section.records(NOTE)[0]
        if int(note["namesz"]) != len(NOTE_OWNER) + 1 or int(note["descsz"]) != 16:
            raise SectionError("name and content of a note are 4 and 16 bytes", section.name, 0)
        if note["type"] == kind:
            _, *numbers = note["desc"].tolist()
            found.append(Version(*numbers))
    if len(found) != 1:
        raise SectionError(f"a blob has one of type {kind:#x}, this has {len(found)}", "notes", 0)
    return found[0]


def _containers(section: Section, kinds: list[Record]) -> list[RecordArray]:
    try:
        return abi.decode_container(bytes(section.data), kinds)
    except abi.ContainerError as error:
        raise SectionError(str(error), section.name, 0) from None


def _one(section: Section, records: RecordArray) -> Any:
    if len(records) != 1:
        raise SectionError(f"{len(records)} records where one is due", section.name, 0)
    return records[0]


def _dims(section: Section, dims: Any, rank: int) -> tuple[int, ...]:
    if rank > abi.MAX_DIMS:
        raise SectionError(f"a tensor of {rank} dimensions", section.name, 0)
    return tuple(int(dim) for dim in dims[:rank])


def _name(section: Section, raw: np.bytes_) -> str:
    try:
        return bytes(raw).split(b"\0", 1)[0].decode()
    except UnicodeDecodeError:
        raise SectionError(f"a name that is no UTF-8: {raw!r}", section.name, 0) from None


def _tensors(section: Section, refs: RecordArray) -> tuple[TensorInfo, ...]:
    tensors: list[TensorInfo] = []
    for ref in refs:
        name = _name(section, ref["name"])
        element = BY_CODE.get(int(ref["data_type"]))
        if element is None:
            raise SectionError(f"{name!r} has unknown type {ref['data_type']}", section.name, 0)
        shape = _dims(section, ref["dims"], int(ref["dimensions_size"]))
        tensors.append(TensorInfo(name, element, shape))
    names = [tensor.name for tensor in tensors]
    if len(set(names)) != len(names):
        raise SectionError("two tensors have one name", section.name, 0)
    return tuple(tensors)


def _nodes(section: Section, nodes: RecordArray) -> tuple[NodeInfo, ...]:
    found: list[NodeInfo] = []
    for node in nodes:
        count = int(node["tensor_names_count"])
        if count > abi.MAX_NAMES:
            raise SectionError(f"a node with {count} names", section.name, 0)
        names = tuple(_name(section, name) for name in node["tensor_names"][:count])
        shape = _dims(section, node["shape"], int(node["shape_size"]))
        found.append(NodeInfo(_name(section, node["friendly_name"]), names, shape))
    return tuple(found)
