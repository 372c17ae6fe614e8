"""From the XML of an IR to layers and edges; XML is untrusted, so no document type is accepted.

Source: OpenVINO IR version 11, as openvino.save_model writes it.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compiler_layer.errors import BadModel

PortKey = tuple[str, str]
"""A port: layer id, port id."""


@dataclass(slots=True)
class OutputPort:
    """A layer's result."""

    id: str
    names: tuple[str, ...]


@dataclass(slots=True)
class Layer:
    """An operation of the IR."""

    id: str
    name: str
    type: str
    version: str
    position: int
    data: dict[str, str] = field(default_factory=dict[str, str])
    inputs: list[str] = field(default_factory=list[str])
    outputs: list[OutputPort] = field(default_factory=list[OutputPort])

    @property
    def kind(self) -> str:
        """Type with opset, as people look it up: ``Gather-8``."""
        return f"{self.type}-{self.version.removeprefix('opset')}"


@dataclass(frozen=True, slots=True)
class Network:
    """An IR's layers in an order in which they can run, and what feeds each input port."""

    layers: list[Layer]
    sources: Mapping[PortKey, PortKey]


class _Target:
    """Collects layers and edges as the parser meets them."""

    def __init__(self) -> None:
        self.layers: dict[str, Layer] = {}
        self.edges: list[tuple[PortKey, PortKey]] = []
        self._layer: Layer | None = None
        self._depth = 0
        self._section = ""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise ValueError("a document type declaration is not allowed")

    def start(self, tag: str, attrs: dict[str, str]) -> None:
        self._depth += 1
        if tag == "layer" and self._depth == 3:
            self._layer = Layer(
                attrs["id"],
                attrs["name"],
                attrs["type"],
                attrs.get("version", "opset1"),
                len(self.layers),
            )
            if self._layer.id in self.layers:
                raise ValueError(f"two layers have the id {self._layer.id}")
            self.layers[self._layer.id] = self._layer
        elif tag == "edge":
            source = (attrs["from-layer"], attrs["from-port"])
            self.edges.append((source, (attrs["to-layer"], attrs["to-port"])))
        elif self._layer is not None:
            self._inside(self._layer, tag, attrs)

    def _inside(self, layer: Layer, tag: str, attrs: dict[str, str]) -> None:
        if self._depth == 4:
            self._section = tag
            if tag == "data":
                layer.data = dict(attrs)
        elif tag == "port" and self._section == "input":
            layer.inputs.append(attrs["id"])
        elif tag == "port" and self._section == "output":
            names = tuple(name for name in attrs.get("names", "").split(",") if name)
            layer.outputs.append(OutputPort(attrs["id"], names))

    def end(self, tag: str) -> None:
        if tag == "layer" and self._depth == 3:
            self._layer = None
        self._depth -= 1

    def data(self, data: str) -> None:
        pass

    def close(self) -> None:
        pass


def parse_xml(path: Path) -> Network:
    """Read an IR's XML.

    Raises:
        BadModel: it cannot be read, is no IR, has a cycle, or an input port with no single source.
    """
    target: Any = _Target()
    try:
        ET.parse(path, ET.XMLParser(target=target))
    except OSError as error:
        raise BadModel(path, error.strerror or str(error)) from None
    except (ET.ParseError, ValueError) as error:
        raise BadModel(path, f"no OpenVINO IR: {error}") from None
    except KeyError as error:
        raise BadModel(path, f"no OpenVINO IR: attribute {error} is missing") from None
    if not target.layers:
        raise BadModel(path, "no OpenVINO IR: it has no layers")
    sources = _sources(path, target.layers, target.edges)
    return Network(_sorted(path, target.layers, sources), sources)


def _sources(
    path: Path, layers: Mapping[str, Layer], edges: list[tuple[PortKey, PortKey]]
) -> dict[PortKey, PortKey]:
    outputs = {(layer.id, port.id) for layer in layers.values() for port in layer.outputs}
    sources: dict[PortKey, PortKey] = {}
    for source, sink in edges:
        if source not in outputs:
            raise BadModel(
                path, f"an edge begins at port {source[1]} of layer {source[0]}, unknown"
            )
        if sink in sources:
            raise BadModel(path, f"port {sink[1]} of layer {sink[0]} is fed twice")
        sources[sink] = source
    for layer in layers.values():
        for port in layer.inputs:
            if (layer.id, port) not in sources:
                raise BadModel(path, f"input port {port} is not connected", layer.name)
    return sources


def _sorted(
    path: Path, layers: Mapping[str, Layer], sources: Mapping[PortKey, PortKey]
) -> list[Layer]:
    """Order layers so that each comes after what feeds it, otherwise as in the file."""
    done: set[str] = set()
    order: list[Layer] = []
    for root in layers.values():
        stack = [(root, iter(root.inputs))] if root.id not in done else []
        path_ids = {root.id}
        while stack:
            layer, ports = stack[-1]
            feeder = next((sources[layer.id, p][0] for p in ports), None)
            if feeder is None:
                stack.pop()
                path_ids.discard(layer.id)
                done.add(layer.id)
                order.append(layer)
            elif feeder in path_ids:
                raise BadModel(path, "the layers form a cycle", layers[feeder].name)
            elif feeder not in done:
                stack.append((layers[feeder], iter(layers[feeder].inputs)))
                path_ids.add(feeder)
    return order
