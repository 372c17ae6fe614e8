"""Finds everything in an IR that is not understood, before anything is built from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from compiler_layer.dialects.ov.paged_attention import CACHES
from compiler_layer.elements import FLOATS, NUMPY
from compiler_layer.errors import RUN_ON_CPU, UnsupportedOps
from compiler_layer.frontends.openvino_ir.ops import unsupported_value
from compiler_layer.frontends.openvino_ir.rules import RULES
from compiler_layer.frontends.openvino_ir.xml import Layer, Network

_SPECIAL = {
    "Parameter": {"opset1"},
    "Const": {"opset1"},
    "Result": {"opset1"},
    "ReadValue": {"opset6"},
    "Assign": {"opset6"},
}

DYNAMIC = "dynamic"
"""The type of a variable that takes the type of its initial value, and of paged caches."""

CACHE_ELEMENT = "f32"
"""The element type of paged caches whose type a file leaves open."""

PRECISIONS = {
    **{element.upper(): element for element in NUMPY},
    **{f"FP{width}": f"f{width}" for width in (64, 32, 16)},
    "BOOL": "boolean",
}
"""Element types by what declarations of ports call them."""


_SINKS = "with attention sinks (input 6, as gpt-oss has)"
_ATTENTION_INPUTS = 6
"""Inputs of a ScaledDotProductAttention that has sinks."""

_PAGED_ATTENTION = "PagedAttentionExtension"


def is_absent(layer: Layer) -> bool:
    """Whether a constant stands for an input that is not given: of no type, without elements."""
    data = layer.data
    return layer.type == "Const" and (data.get("element_type"), data.get("shape")) == (DYNAMIC, "0")


def check_supported(path: Path, network: Network) -> None:
    """Look at every layer's type, opset, attributes and element types.

    Raises:
        UnsupportedOps: all that are not understood.
    """
    unsupported: list[tuple[str, str]] = []
    layers = {layer.id: layer for layer in network.layers}
    caches = open_caches(network)
    for layer in network.layers:
        if layer.id in caches:
            continue
        opsets = _SPECIAL.get(layer.type)
        if opsets is None:
            opsets = RULES[layer.type].opsets if layer.type in RULES else set[str]()
        if layer.version not in opsets:
            unsupported.append((layer.kind, layer.name))
            continue
        detail = _unsupported_detail(network, layers, layer)
        if detail is not None:
            unsupported.append((f"{layer.kind} {detail}", layer.name))
    if unsupported:
        sinks = any(kind.endswith(_SINKS) for kind, _ in unsupported)
        raise UnsupportedOps(path, unsupported, [RUN_ON_CPU] if sinks else [])


def _unsupported_detail(network: Network, layers: Mapping[str, Layer], layer: Layer) -> str | None:
    """What of a layer of a known type is not understood, or None."""
    for key in ("element_type", "variable_type"):
        open_type = layer.data.get(key) == DYNAMIC and (key == "variable_type" or is_absent(layer))
        if layer.data.get(key, "f32") not in NUMPY and not open_type:
            return f"of {layer.data[key]}"
    for port in layer.outputs:
        if port.precision and port.precision not in PRECISIONS and not is_absent(layer):
            return f"of {port.precision}"
    if layer.type in _SPECIAL:
        return None
    if layer.type == "ScaledDotProductAttention" and len(layer.inputs) == _ATTENTION_INPUTS:
        return _SINKS
    for index in RULES[layer.type].constants:
        if index < len(layer.inputs) and not _is_known(network, layers, layer, index):
            return f"whose input {index} is no constant"
    floats = all(PRECISIONS.get(port.precision) in FLOATS for port in layer.outputs)
    if layer.data.get("m_pythondiv", "true") not in ("true", "1") and not floats:
        return f"of integers with m_pythondiv {layer.data['m_pythondiv']!r}"
    return unsupported_value(layer.type, layer.data)


def _is_known(network: Network, layers: Mapping[str, Layer], layer: Layer, index: int) -> bool:
    """Whether an input is a constant, or a Range of constants: axes that an exporter counted."""
    feeder = layers[network.feeder(layer, index)[0]]
    if feeder.type != "Range":
        return feeder.type == "Const"
    bounds = (network.feeder(feeder, number)[0] for number in range(len(feeder.inputs)))
    return all(layers[each].type == "Const" for each in bounds)


def open_caches(network: Network) -> frozenset[str]:
    """Return the ids of parameters that are caches in pages, of an element type left open."""
    caches = {
        layer.id
        for layer in network.layers
        if layer.type == "Parameter" and layer.data.get("element_type") == DYNAMIC
    }
    for reader in network.layers if caches else ():
        for number, port in enumerate(reader.inputs):
            if reader.type != _PAGED_ATTENTION or number not in CACHES:
                caches.discard(network.sources[reader.id, port][0])
    return frozenset(caches)
