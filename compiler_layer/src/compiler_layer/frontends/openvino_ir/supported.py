"""Check for unsupported layers in an IR, before a model is built from it."""

from __future__ import annotations

from pathlib import Path

from compiler_layer.dialects.ov.paged_attention import CACHES
from compiler_layer.elements import FLOATS, NUMPY
from compiler_layer.errors import RUN_ON_CPU, UnsupportedOps
from compiler_layer.frontends.openvino_ir.ops import unsupported_value
from compiler_layer.frontends.openvino_ir.rules import RULES
from compiler_layer.frontends.openvino_ir.xml import IrLayer, Network

_SPECIAL = {
    "Parameter": {"opset1"},
    "Const": {"opset1"},
    "Result": {"opset1"},
    "ReadValue": {"opset6"},
    "Assign": {"opset6"},
}

DYNAMIC = "dynamic"
"""Type of a variable with its initial value's type, and of paged caches."""

CACHE_ELEMENT = "f32"
"""Element type of paged caches that the file declares as dynamic."""

PRECISIONS = {
    **{element.upper(): element for element in NUMPY},
    **{f"FP{width}": f"f{width}" for width in (64, 32, 16)},
    "BOOL": "boolean",
}
"""Element types by their names in declarations of ports."""


_SINKS = "with attention sinks (input 6, as gpt-oss has)"
_ATTENTION_INPUTS = 6
"""Number of inputs of a ScaledDotProductAttention with sinks."""

_PAGED_ATTENTION = "PagedAttentionExtension"


def is_absent(layer: IrLayer) -> bool:
    """Return whether a constant represents an absent input: dynamic type, no elements."""
    data = layer.data
    return layer.type == "Const" and (data.get("element_type"), data.get("shape")) == (DYNAMIC, "0")


def check_supported(path: Path | str, network: Network) -> None:
    """Check every layer's type, opset, attributes and element types.

    Raises:
        UnsupportedOps: layers are not supported; the error lists all.
    """
    unsupported = [(kind, layer.name) for layer, kind in unsupported_layers(network)]
    if unsupported:
        sinks = any(kind.endswith(_SINKS) for kind, _ in unsupported)
        raise UnsupportedOps(path, unsupported, [RUN_ON_CPU] if sinks else [])


def unsupported_layers(network: Network) -> list[tuple[IrLayer, str]]:
    """Return the layers that are not supported, each with its type and unsupported feature."""
    unsupported: list[tuple[IrLayer, str]] = []
    caches = open_caches(network)
    for layer in network.layers:
        if layer.id in caches:
            continue
        opsets = _SPECIAL.get(layer.type)
        if opsets is None:
            opsets = RULES[layer.type].opsets if layer.type in RULES else set[str]()
        if layer.version not in opsets:
            unsupported.append((layer, layer.kind))
            continue
        detail = _unsupported_detail(network, layer)
        if detail is not None:
            unsupported.append((layer, f"{layer.kind} {detail}"))
    return unsupported


def _unsupported_detail(network: Network, layer: IrLayer) -> str | None:
    """Return the unsupported feature of a layer of a supported type, or None."""
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
        if index < len(layer.inputs) and not _is_known(network, layer, index):
            return f"whose input {index} is not a constant"
    floats = all(PRECISIONS.get(port.precision) in FLOATS for port in layer.outputs)
    if layer.data.get("m_pythondiv", "true") not in ("true", "1") and not floats:
        return f"of integers with m_pythondiv {layer.data['m_pythondiv']!r}"
    return unsupported_value(layer.type, layer.data)


def _is_known(network: Network, layer: IrLayer, index: int) -> bool:
    """Return whether an input is a constant, or a Range of constants (axes from an exporter)."""
    feeder, _ = network.feeder(layer, index)
    if feeder.type != "Range":
        return feeder.type == "Const"
    bounds = (network.feeder(feeder, number)[0] for number in range(len(feeder.inputs)))
    return all(each.type == "Const" for each in bounds)


def open_caches(network: Network) -> frozenset[str]:
    """Return the ids of parameters that are paged caches of dynamic element type."""
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
