"""Metadata sections: names, types and shapes of a blob's inputs and outputs.

Source: docs/reference/elf.md#metadata.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.errors import UnsupportedModel
from compiler_layer.model import Port
from driver_layer.abi import metadata as abi
from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.abi.layout import RecordArray, text_field
from driver_layer.abi.platforms import Platform

MADE_PREFIX = "vpux_"
"""Prefix of arguments (state, weights) that are not parameters or results of the OpenVINO model."""


def network_metadata(
    name: str, inputs: Sequence[Port], outputs: Sequence[Port], platform: Platform, tiles: int
) -> bytes:
    """Write the NETDESC section."""
    identification = np.zeros(1, abi.IDENTIFICATION)
    identification["arch_name"] = platform.arch.name.encode()
    identification["blob_name"] = text_field(name, abi.TEXT_BYTES)
    resources = np.zeros(1, abi.RESOURCE_REQUIREMENTS)
    resources["slice_length"] = platform.workspace_bytes
    resources["tile_count"] = tiles
    resources["barriers"] = min(255, platform.barriers_per_tile * tiles)
    refs = {kind: _tensor_refs(ports) for kind, ports in (("in", inputs), ("out", outputs))}
    nodes = {kind: _nodes(ports) for kind, ports in (("in", inputs), ("out", outputs))}
    none = np.zeros(0, abi.TENSOR_REF)
    return abi.encode_container(
        [
            identification,
            resources,
            refs["in"],
            refs["out"],
            refs["in"],
            refs["out"],
            none,
            np.zeros(0, abi.PREPROCESSING_INFO),
            nodes["in"],
            nodes["out"],
        ]
    )


def platform_info(platform: Platform) -> bytes:
    """Write the PLATFORM_INFO section."""
    info = np.zeros(1, abi.PLATFORM_INFO)
    info["arch_kind"] = platform.arch
    return abi.encode_container([info])


def _tensor_refs(ports: Sequence[Port]) -> RecordArray:
    refs = np.zeros(len(ports), abi.TENSOR_REF)
    for ref, port in zip(refs, ports, strict=True):
        shape = _checked_shape(port)
        element = ELEMENT_TYPES[element_of(port.value)]
        ref["strides"][: len(shape) + 1] = _strides(shape, element.bits)
        ref["dims"][: len(shape)] = shape
        ref["name"] = text_field(port.name, abi.TEXT_BYTES)
        ref["order"] = abi.ORDER_BY_RANK[len(shape)] if shape else 0
        ref["data_type"] = element.code
        ref["dimensions_size"] = len(shape)
        ref["strides_size"] = len(shape)
    return refs


def _strides(shape: Sequence[int], bits: int) -> list[int]:
    """Return the element's bits, then each dimension's stride in bits, row-major."""
    strides: list[int] = []
    step = bits
    for d in reversed(shape):
        strides.insert(0, step)
        step *= d
    return [bits, *strides]


def _nodes(ports: Sequence[Port]) -> RecordArray:
    real = [port for port in ports if not port.name.startswith(MADE_PREFIX)]
    nodes = np.zeros(len(real), abi.OV_NODE)
    for node, port in zip(nodes, real, strict=True):
        shape = _checked_shape(port)
        name = text_field(port.name, abi.TEXT_BYTES)
        node["tensor_names"][0] = name
        node["shape"][: len(shape)] = shape
        node["friendly_name"] = name
        node["type"] = ELEMENT_TYPES[element_of(port.value)].node_type
        node["shape_size"] = len(shape)
        node["tensor_names_count"] = 1
    return nodes


def _checked_shape(port: Port) -> tuple[int, ...]:
    shape = shape_of(port.value)
    if len(shape) not in abi.ORDER_BY_RANK and shape:
        raise UnsupportedModel(f"{port.name!r} has {len(shape)} dimensions; a blob takes at most 7")
    if len(port.name.encode()) >= abi.TEXT_BYTES:
        raise UnsupportedModel(f"name {port.name[:40]!r}… is over {abi.TEXT_BYTES - 1} bytes long")
    return shape
