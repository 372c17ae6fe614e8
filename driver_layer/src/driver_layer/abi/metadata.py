"""Serialised containers of a blob: network metadata, platform information, performance tables.

A container is a chain of 32-byte descriptors, each of which points to an array of elements.
Source: docs/reference/elf.md#metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from driver_layer.abi.layout import Record, RecordArray, record

MAX_DIMS = 8
MAX_STRIDES = 9
MAX_NAMES = 32
TEXT_BYTES = 256

CHAIN = record(
    32,
    ("data_offset", 0, "<u8"),
    ("next", 8, "<u8"),
    ("count", 16, "<u8"),
    ("elem_size", 24, "<u8"),
)
"""A link of a container: location of an array of elements, and of the next link (0: last)."""

IDENTIFICATION = record(512, ("arch_name", 0, "S256"), ("blob_name", 256, "S256"))

RESOURCE_REQUIREMENTS = record(
    12, ("slice_length", 0, "<u4"), ("tile_count", 10, "u1"), ("barriers", 11, "u1")
)
"""CMX bytes available per tile, tiles and barriers that the blob uses."""

TENSOR_REF = record(
    384,
    ("strides", 0, ("<u8", (MAX_STRIDES,))),
    ("dims", 72, ("<u4", (MAX_DIMS,))),
    ("name", 104, f"S{TEXT_BYTES}"),
    ("order", 360, "<u8"),
    ("data_type", 368, "<u4"),
    ("dimensions_size", 372, "<u4"),
    ("strides_size", 376, "<u4"),
    ("flags", 380, "u1"),
)
"""An input, output or profiling tensor; strides are in bits, [0] being the element."""

DYNAMIC_STRIDES = 1
"""Bit of a tensor's ``flags``: callers may bind tensors with other strides than the dense ones."""

PREPROCESSING_INFO = record(
    268,
    ("input_name", 0, f"S{TEXT_BYTES}"),
    ("input_format", 256, "<u4"),
    ("output_format", 260, "<u4"),
    ("algorithm", 264, "<u4"),
)
"""Conversion of an image input; this stack writes none."""

OV_NODE = record(
    8784,
    ("tensor_names", 0, (f"S{TEXT_BYTES}", (MAX_NAMES,))),
    ("shape", 8192, ("<u8", (MAX_DIMS,))),
    ("friendly_name", 8256, f"S{TEXT_BYTES}"),
    ("input_name", 8512, f"S{TEXT_BYTES}"),
    ("type", 8768, "<u4"),
    ("shape_size", 8772, "<u4"),
    ("tensor_names_count", 8776, "<u4"),
)
"""A parameter or result of the OpenVINO model; arguments for states have no such record."""

PLATFORM_INFO = record(8, ("arch_kind", 0, "<u8"))

PERFORMANCE_METRICS = record(
    320,
    ("freq_base", 0, "<u4"),
    ("freq_step", 4, "<u4"),
    ("bw_base", 8, "<u4"),
    ("bw_step", 12, "<u4"),
    ("ticks", 16, ("<u8", (5, 5))),
    ("scalability", 216, ("<f4", (5, 5))),
    ("activity", 316, "<f4"),
)
"""Inference time at five frequencies × five bandwidths, for the power manager."""

MAX_DATA_TYPE = 23
"""F4E2M1, the last element type of tensors."""

MAX_NODE_TYPE = 24
"""F4E2M1, the last element type of parameters and results."""

MAX_COLOR_FORMAT = 4
MAX_RESIZE_ALGORITHM = 2

NETWORK_METADATA: tuple[tuple[str, Record], ...] = (
    ("identification", IDENTIFICATION),
    ("resource_requirements", RESOURCE_REQUIREMENTS),
    ("net_inputs", TENSOR_REF),
    ("net_outputs", TENSOR_REF),
    ("in_tensor_descriptors", TENSOR_REF),
    ("out_tensor_descriptors", TENSOR_REF),
    ("profiling_outputs", TENSOR_REF),
    ("preprocessing_info", PREPROCESSING_INFO),
    ("ov_parameters", OV_NODE),
    ("ov_results", OV_NODE),
)
"""The arrays of a NETDESC section, in order."""


class ArchKind(IntEnum):
    """Generation that a blob is for; the codes after 40XX continue in order."""

    UNKNOWN = 0
    VPUX30XX = 1
    VPUX37XX = 3
    VPUX40XX = 4
    NPU5010 = 5
    NPU5020 = 6


ORDER_BY_RANK = {1: 0x1, 2: 0x12, 3: 0x123, 4: 0x1234, 5: 0x12345, 6: 0x123456, 7: 0x1234567}
"""``order`` of a dense, row-major tensor: a permutation coded in nibbles, outermost first."""


class ContainerError(ValueError):
    """The content of a serialised container contradicts its descriptors.

    Args:
        message: the problem.
        offset: byte offset in the container.
    """

    def __init__(self, message: str, offset: int) -> None:
        self.offset = offset
        super().__init__(message)


class ContainerArray(NamedTuple):
    """One array of a container, and the byte offset of its first record."""

    records: RecordArray
    offset: int


def encode_container(arrays: Sequence[RecordArray]) -> bytes:
    """Serialise arrays of records as a chain; links and arrays are aligned to 8 bytes."""
    links = np.zeros(len(arrays), CHAIN)
    body = bytearray()
    offset = 0
    for index, array in enumerate(arrays):
        data = array.tobytes()
        data_offset = offset + CHAIN.itemsize
        following = data_offset + -(-len(data) // 8) * 8
        last = index + 1 == len(arrays)
        links[index] = (data_offset, 0 if last else following, array.size, array.dtype.itemsize)
        body += links[index].tobytes() + data + bytes(following - data_offset - len(data))
        offset = following
    return bytes(body)


def decode_container(data: bytes | memoryview, kinds: Sequence[Record]) -> list[ContainerArray]:
    """Read a chain of arrays in place; all links and arrays are checked to be within the data.

    Elements must have exactly the size of the record in ``kinds``, as in the public loader. The
    chain may continue after the arrays that are read: later versions append arrays.

    Raises:
        ContainerError: the chain is shorter than ``kinds``, points backwards, or leaves the data;
            or elements have another size.
    """
    arrays: list[ContainerArray] = []
    offset = 0
    for index, kind in enumerate(kinds):
        if index and offset == 0:
            raise ContainerError(f"the chain ends after {index} of {len(kinds)} arrays", 0)
        array, following = _read_link(data, offset, kind)
        arrays.append(array)
        offset = following
    return arrays


def _read_link(data: bytes | memoryview, offset: int, kind: Record) -> tuple[ContainerArray, int]:
    if offset + CHAIN.itemsize > len(data):
        raise ContainerError(f"no room for a link at {offset} in {len(data)} bytes", offset)
    link = np.frombuffer(data, CHAIN, 1, offset)[0]
    start, count, size = int(link["data_offset"]), int(link["count"]), int(link["elem_size"])
    following = int(link["next"])
    if following and (following <= offset or following % 8):
        raise ContainerError(
            f"the link at {offset} points back or unaligned, to {following}", offset
        )
    if following + CHAIN.itemsize > len(data):
        raise ContainerError(f"the link at {offset} points to {following}, past the end", offset)
    if count and size != kind.itemsize:
        raise ContainerError(
            f"the link at {offset} has elements of {size} bytes instead of {kind.itemsize}", offset
        )
    if start + count * size > len(data):
        raise ContainerError(
            f"the link at {offset} declares {count} elements of {size} bytes at {start}, "
            f"past the end at {len(data)}",
            offset,
        )
    records = np.frombuffer(data, kind, count, start) if count else np.zeros(0, kind)
    return ContainerArray(records, start), following
