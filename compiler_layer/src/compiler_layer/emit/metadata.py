"""Metadata sections: names, types and shapes of a blob's inputs and outputs.

Source: docs/reference/elf.md#metadata.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler_layer.dialects.ov.types import element_of, shape_of
from compiler_layer.errors import UnsupportedModel
from compiler_layer.model import ModelNames, Port, PortNames
from compiler_layer.schedule.program import ScheduledProgram
from compiler_layer.schedule.views import Buffer, dense_strides
from driver_layer.abi import metadata as abi
from driver_layer.abi.dtypes import ELEMENT_TYPES
from driver_layer.abi.layout import RecordArray, text_field
from driver_layer.abi.platforms import Platform

MADE_PREFIX = "vpux_"
"""Prefix of arguments (state, weights) that are not parameters or results of the OpenVINO model."""


def network_metadata(
    name: str,
    program: ScheduledProgram,
    platform: Platform,
    tiles: int,
    names: ModelNames,
) -> bytes:
    """Write the NETDESC section; ``names`` may be of fewer ports, which then come first."""
    identification = np.zeros(1, abi.IDENTIFICATION)
    identification["arch_name"] = platform.arch.name.encode()
    identification["blob_name"] = text_field(name, abi.TEXT_BYTES)
    resources = np.zeros(1, abi.RESOURCE_REQUIREMENTS)
    resources["slice_length"] = platform.workspace_bytes
    resources["tile_count"] = tiles
    resources["barriers"] = min(255, platform.barriers_per_tile * tiles)
    refs = [
        _tensor_refs(program.inputs, program.layout.inputs),
        _tensor_refs(program.outputs, program.layout.outputs),
    ]
    nodes = [_nodes(program.inputs, names.inputs), _nodes(program.outputs, names.outputs)]
    none = [np.zeros(0, kind) for kind in (abi.TENSOR_REF, abi.PREPROCESSING_INFO)]
    return abi.encode_container([identification, resources, *refs, *refs, *none, *nodes])


def platform_info(platform: Platform) -> bytes:
    """Write the PLATFORM_INFO section."""
    info = np.zeros(1, abi.PLATFORM_INFO)
    info["arch_kind"] = platform.arch
    return abi.encode_container([info])


def _tensor_refs(ports: Sequence[Port], buffers: Sequence[Buffer]) -> RecordArray:
    refs = np.zeros(len(ports), abi.TENSOR_REF)
    for ref, port, buffer in zip(refs, ports, buffers, strict=True):
        shape = _checked_shape(port)
        element = ELEMENT_TYPES[element_of(port.value)]
        ref["strides"][: len(shape) + 1] = [element.bits, *dense_strides(shape, element.bits)]
        ref["dims"][: len(shape)] = shape
        ref["name"] = _text(port.name)
        ref["order"] = abi.ORDER_BY_RANK[len(shape)] if shape else 0
        ref["data_type"] = element.code
        ref["dimensions_size"] = len(shape)
        ref["strides_size"] = len(shape)
        ref["flags"] = abi.DYNAMIC_STRIDES if buffer.strided else 0
    return refs


def _nodes(ports: Sequence[Port], names: Sequence[PortNames]) -> RecordArray:
    real = [port for port in ports if not port.name.startswith(MADE_PREFIX)]
    nodes = np.zeros(len(real), abi.OV_NODE)
    for index, (node, port) in enumerate(zip(nodes, real, strict=True)):
        shape = _checked_shape(port)
        known = names[index] if index < len(names) else PortNames(port.name, (port.name,))
        tensors = known.tensors[: abi.MAX_NAMES]  # as the public compiler
        for number, name in enumerate(tensors):
            node["tensor_names"][number] = _text(name)
        node["shape"][: len(shape)] = shape
        node["friendly_name"] = _text(known.friendly)
        node["input_name"] = _text(port.name)
        node["type"] = ELEMENT_TYPES[element_of(port.value)].node_type
        node["shape_size"] = len(shape)
        node["tensor_names_count"] = len(tensors)
    return nodes


def _text(name: str) -> bytes:
    """Return a name as a field.

    Raises:
        UnsupportedModel: the name is too long.
    """
    if len(name.encode()) >= abi.TEXT_BYTES:
        raise UnsupportedModel(
            f"name {name[:40]!r}… is over {abi.TEXT_BYTES - 1} bytes long; shorten it"
        )
    return text_field(name, abi.TEXT_BYTES)


def _checked_shape(port: Port) -> tuple[int, ...]:
    shape = shape_of(port.value)
    if len(shape) not in abi.ORDER_BY_RANK and shape:
        raise UnsupportedModel(f"{port.name!r} has {len(shape)} dimensions; a blob takes at most 7")
    return shape
