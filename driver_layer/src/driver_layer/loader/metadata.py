"""A blob's metadata: NETDESC, PLATFORM_INFO and the version notes as plain objects.

Every field is checked against its range, even if no code here uses it: the public driver accepts
the same blobs and trusts counts and texts.

Source: docs/reference/elf.md#metadata, docs/reference/elf.md#version-notes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from driver_layer.abi import metadata as abi
from driver_layer.abi.dtypes import BY_CODE, ElementType
from driver_layer.abi.elf import SectionType
from driver_layer.abi.notes import NOTE, NOTE_OWNER, Version
from driver_layer.errors import SectionError
from driver_layer.loader.read import Blob, Section
from driver_layer.loader.records import CheckedRecord, read_arrays


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output in the form that the device uses."""

    name: str
    element: ElementType
    shape: tuple[int, ...]
    order: int = 0
    """Order of the dimensions, in nibbles: ``abi.metadata.ORDER_BY_RANK``."""
    network_type: int = 0
    """Element type that the model declares, a code of ``DType``."""
    network_order: int = 0
    """Order of the dimensions that the model declares."""
    dynamic_strides: bool = False
    """True if callers may bind tensors with other strides than the dense ones."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides of the dense tensor in elements, outermost dimension first."""
        step = 1
        strides: list[int] = []
        for dim in reversed(self.shape):
            strides.append(step)
            step *= dim
        return tuple(reversed(strides))

    @property
    def nbytes(self) -> int:
        """Size in bytes of the dense tensor."""
        return -(-math.prod(self.shape) * self.element.bits // 8)

    def extent(self, strides: Sequence[int]) -> int:
        """Return the bytes from the first element to the last one.

        Args:
            strides: in elements, innermost dimension first; empty for the dense tensor.
        """
        if not strides or 0 in self.shape:
            return self.nbytes
        dims = zip(reversed(self.shape), strides, strict=True)
        last = sum((dim - 1) * stride for dim, stride in dims)
        return -(-(last + 1) * self.element.bits // 8)


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A parameter or result of the OpenVINO model."""

    friendly_name: str
    tensor_names: tuple[str, ...]
    shape: tuple[int, ...]
    """Dimensions; a dynamic one is 2⁶⁴ − 1."""
    type: int
    """Code of the element type in OpenVINO, ``ElementType.node_type``."""
    input_name: str


@dataclass(frozen=True, slots=True)
class NetworkMetadata:
    """Content of the NETDESC section."""

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
    """Return the only section of a type.

    Raises:
        SectionError: the blob has none, or several.
    """
    found = blob.of_type(kind)
    if len(found) != 1:
        raise SectionError(f"{len(found)} sections of this type instead of one", kind.name, 0)
    return found[0]


_known: WeakKeyDictionary[Blob, NetworkMetadata] = WeakKeyDictionary()


def read_network(blob: Blob) -> NetworkMetadata:
    """Read the NETDESC section, once for each blob.

    Raises:
        SectionError: the section is missing or malformed.
    """
    found = _known.get(blob)
    if found is None:
        found = _known[blob] = _read_network(blob)
    return found


def _read_network(blob: Blob) -> NetworkMetadata:
    section = the_section(blob, SectionType.VPU_SHT_NETDESC)
    arrays = read_arrays(section, abi.NETWORK_METADATA)
    identification = _one(section, arrays["identification"])
    resources = _one(section, arrays["resource_requirements"])
    for kind in ("net_inputs", "net_outputs", "profiling_outputs"):
        for ref in arrays[kind]:
            _tensor(ref)
    for info in arrays["preprocessing_info"]:
        _check_preprocessing(info)
    for declared, described in (
        ("net_inputs", "in_tensor_descriptors"),
        ("net_outputs", "out_tensor_descriptors"),
    ):
        if len(arrays[declared]) != len(arrays[described]):
            message = (
                f"{len(arrays[declared])} {declared} with {len(arrays[described])} descriptors"
            )
            raise SectionError(message, section.name, 0)
    return NetworkMetadata(
        arch_name=identification.label("arch_name"),
        blob_name=identification.label("blob_name"),
        slice_length=resources.number("slice_length"),
        tile_count=resources.number("tile_count"),
        barriers=resources.number("barriers"),
        inputs=_described(arrays["net_inputs"], arrays["in_tensor_descriptors"]),
        outputs=_described(arrays["net_outputs"], arrays["out_tensor_descriptors"]),
        parameters=tuple(_node(node) for node in arrays["ov_parameters"]),
        results=tuple(_node(node) for node in arrays["ov_results"]),
    )


def read_arch(blob: Blob) -> int:
    """Read the generation that a blob is for (``abi.metadata.ArchKind``).

    Raises:
        SectionError: PLATFORM_INFO is missing or malformed.
    """
    section = the_section(blob, SectionType.VPU_SHT_PLATFORM_INFO)
    arrays = read_arrays(section, (("platform_info", abi.PLATFORM_INFO),))
    return _one(section, arrays["platform_info"]).number("arch_kind")


def read_version(blob: Blob, kind: int) -> Version:
    """Read one version note.

    Raises:
        SectionError: a note is malformed, or the blob does not have exactly one of this type.
    """
    found: list[Version] = []
    for section in blob.of_type(SectionType.SHT_NOTE):
        if section.size != NOTE.itemsize:
            raise SectionError(f"a note has {section.size} bytes instead of 32", section.name, 0)
        note = section.records(NOTE)[0]
        if int(note["namesz"]) != len(NOTE_OWNER) + 1 or int(note["descsz"]) != 16:
            raise SectionError("a note must have a name of 4 bytes, content of 16", section.name, 0)
        if note["type"] == kind:
            _, *numbers = note["desc"].tolist()
            found.append(Version(*numbers))
    if len(found) != 1:
        raise SectionError(f"{len(found)} notes of type {kind:#x} instead of one", "notes", 0)
    return found[0]


def _one(section: Section, records: list[CheckedRecord]) -> CheckedRecord:
    if len(records) != 1:
        raise SectionError(f"{len(records)} records instead of one", section.name, 0)
    return records[0]


def _tensor(ref: CheckedRecord) -> tuple[str, int, tuple[int, ...]]:
    """Check a tensor; return its name, type and shape."""
    name, kind = ref.text("name"), ref.number("data_type", abi.MAX_DATA_TYPE)
    ref.number("strides_size", abi.MAX_STRIDES)
    return name, kind, ref.numbers("dims", ref.number("dimensions_size", abi.MAX_DIMS))


def _described(declared: list[CheckedRecord], refs: list[CheckedRecord]) -> tuple[TensorInfo, ...]:
    """Read the device's tensors; names must be unique, types supported."""
    tensors: dict[str, TensorInfo] = {}
    for model, ref in zip(declared, refs, strict=True):
        name, kind, shape = _tensor(ref)
        element = BY_CODE.get(kind)
        if element is None:
            raise ref.error("data_type", f"{name!r} has unsupported type {kind}")
        if name in tensors:
            raise ref.error("name", f"a second tensor has the name {name!r}")
        tensors[name] = TensorInfo(
            name,
            element,
            shape,
            ref.number("order"),
            model.number("data_type", abi.MAX_DATA_TYPE),
            model.number("order"),
            bool(ref.number("flags") & abi.DYNAMIC_STRIDES),
        )
    return tuple(tensors.values())


def _node(node: CheckedRecord) -> NodeInfo:
    kind, input_name = node.number("type", abi.MAX_NODE_TYPE), node.text("input_name")
    count = node.number("tensor_names_count", abi.MAX_NAMES)
    names = tuple(node.text("tensor_names", index) for index in range(count))
    shape = node.numbers("shape", node.number("shape_size", abi.MAX_DIMS))
    return NodeInfo(node.text("friendly_name"), names, shape, kind, input_name)


def _check_preprocessing(info: CheckedRecord) -> None:
    info.text("input_name")
    info.number("input_format", abi.MAX_COLOR_FORMAT)
    info.number("output_format", abi.MAX_COLOR_FORMAT)
    info.number("algorithm", abi.MAX_RESIZE_ALGORITHM)
