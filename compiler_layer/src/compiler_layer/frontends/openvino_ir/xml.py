"""Parser of an IR's XML into layers and edges; document types are rejected, as XML is untrusted.

Source: OpenVINO IR version 11, as openvino.save_model writes it.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from compiler_layer.errors import BadModel

_VERSIONS = ("10", "11")

PortKey = tuple[str, str]
"""Port of a layer: layer id, port id."""


@dataclass(slots=True)
class OutputPort:
    """Result of a layer, as declared in the file."""

    id: str
    names: tuple[str, ...]
    precision: str = ""
    """Type in the file's spelling, e.g. ``FP32``; "" if it is not declared."""
    dims: list[int] = field(default_factory=list[int])


@dataclass(slots=True)
class IrLayer:
    """Operation of the IR."""

    id: str
    name: str
    type: str
    version: str
    position: int
    data: dict[str, str] = field(default_factory=dict[str, str])
    inputs: list[str] = field(default_factory=list[str])
    outputs: list[OutputPort] = field(default_factory=list[OutputPort])
    result_names: tuple[str, ...] = ()
    """Tensor names of a Result; other layers name the tensors of their output ports."""

    @property
    def kind(self) -> str:
        """Documented type with opset: ``Gather-8``."""
        return f"{self.type}-{self.version.removeprefix('opset')}"


@dataclass(frozen=True)
class Network:
    """Layers of an IR in an executable order, and the source of each input port."""

    layers: list[IrLayer]
    sources: Mapping[PortKey, PortKey]
    rt_info: Mapping[str, str]
    """Values of the model's runtime information that are texts, by key."""

    def ports(self, kind: str) -> list[IrLayer]:
        """Return the Parameter or Result layers in the file's order, by which OpenVINO counts."""
        found = [layer for layer in self.layers if layer.type == kind]
        return sorted(found, key=lambda layer: layer.position)

    @cached_property
    def outputs(self) -> Mapping[PortKey, tuple[IrLayer, OutputPort]]:
        """All output ports, each with its layer."""
        return {
            (layer.id, port.id): (layer, port) for layer in self.layers for port in layer.outputs
        }

    def feeder(self, layer: IrLayer, index: int) -> tuple[IrLayer, OutputPort]:
        """Return the layer and its output port that feed a layer's input."""
        return self.outputs[self.sources[layer.id, layer.inputs[index]]]


class _Target:
    def __init__(self) -> None:
        self.layers: dict[str, IrLayer] = {}
        self.edges: list[tuple[PortKey, PortKey]] = []
        self.rt_info: dict[str, str] = {}
        self._layer: IrLayer | None = None
        self._ports: set[PortKey] = set()
        self._path: list[str] = []
        self._text: list[str] | None = None

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise ValueError("a document type declaration is not allowed")

    def start(self, tag: str, attrs: dict[str, str]) -> None:
        self._path.append(tag)
        if self._path == ["net"] and attrs.get("version") not in _VERSIONS:
            raise ValueError(f"version {attrs.get('version')} of the format is not supported")
        if self._path == ["net", "layers", "layer"]:
            self._layer = self._new_layer(attrs)
        elif self._path == ["net", "edges", "edge"]:
            source = (attrs["from-layer"], attrs["from-port"])
            self.edges.append((source, (attrs["to-layer"], attrs["to-port"])))
        elif self._path[:2] == ["net", "rt_info"] and len(self._path) == 3 and "value" in attrs:
            self.rt_info[tag] = attrs["value"]
        elif self._layer is not None:
            self._inside(self._layer, attrs)

    def _new_layer(self, attrs: dict[str, str]) -> IrLayer:
        version = attrs.get("version", "opset1")
        layer = IrLayer(attrs["id"], attrs["name"], attrs["type"], version, len(self.layers))
        layer.result_names = _names(attrs.get("output_names", ""))
        if layer.id in self.layers:
            raise ValueError(f"two layers have the id {layer.id}")
        self.layers[layer.id] = layer
        return layer

    def _inside(self, layer: IrLayer, attrs: dict[str, str]) -> None:
        match self._path[3:]:
            case ["data"]:
                layer.data = dict(attrs)
            case ["input", "port"]:
                self._check_new_port(layer, attrs["id"])
                layer.inputs.append(attrs["id"])
            case ["output", "port"]:
                self._check_new_port(layer, attrs["id"])
                names = _names(attrs.get("names", ""))
                layer.outputs.append(OutputPort(attrs["id"], names, attrs.get("precision", "")))
            case ["output", "port", "dim"]:
                self._text = []
            case _:
                pass

    def _check_new_port(self, layer: IrLayer, port: str) -> None:
        if (layer.id, port) in self._ports:
            raise ValueError(f"layer {layer.name!r} has port {port} twice")
        self._ports.add((layer.id, port))

    def end(self, tag: str) -> None:
        if self._text is not None and self._layer is not None:
            self._layer.outputs[-1].dims.append(int("".join(self._text)))
            self._text = None
        if len(self._path) == 3:
            self._layer = None
        del tag, self._path[-1]

    def data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def close(self) -> None:
        pass


def _names(text: str) -> tuple[str, ...]:
    """Split tensor names at commas; a comma inside a name follows a backslash."""
    parts = re.split(r"(?<!\\),", text)
    return tuple(part.replace("\\,", ",") for part in parts if part)


def parse_xml(path: Path) -> Network:
    """Read an IR's XML.

    Raises:
        BadModel: the file cannot be read, is not an IR, has a cycle, or an input port does not
            have exactly one source.
    """
    if path.exists() and not path.is_file():
        raise BadModel(path, "is not a file")
    return _parse(path, path)


def parse_text(xml: bytes, name: str) -> Network:
    """Parse an IR's XML in memory; ``name`` is its name in errors, as those of ``parse_xml``."""
    return _parse(io.BytesIO(xml), name)


def _parse(source: Path | IO[bytes], path: Path | str) -> Network:
    target: Any = _Target()
    try:
        ET.parse(source, ET.XMLParser(target=target))
    except OSError as error:
        raise BadModel(path, error.strerror or str(error)) from None
    except KeyError as error:
        raise BadModel(path, f"is not an OpenVINO IR: attribute {error} is missing") from None
    except (ET.ParseError, ValueError, LookupError) as error:
        # A LookupError stems from an unknown encoding.
        raise BadModel(path, f"is not an OpenVINO IR: {error}") from None
    if not target.layers:
        raise BadModel(path, "is not an OpenVINO IR: it has no layers")
    sources = _sources(path, target.layers, target.edges)
    return Network(_sorted(path, target.layers, sources), sources, target.rt_info)


def _sources(
    path: Path | str, layers: Mapping[str, IrLayer], edges: list[tuple[PortKey, PortKey]]
) -> dict[PortKey, PortKey]:
    inputs = {(layer.id, port) for layer in layers.values() for port in layer.inputs}
    outputs = {(layer.id, port.id) for layer in layers.values() for port in layer.outputs}
    sources: dict[PortKey, PortKey] = {}
    for source, sink in edges:
        if source not in outputs or layers[source[0]].type == "Result":
            raise BadModel(path, f"an edge begins at unknown port {source[1]} of layer {source[0]}")
        if sink not in inputs:
            raise BadModel(path, f"an edge ends at unknown port {sink[1]} of layer {sink[0]}")
        if sink in sources:
            raise BadModel(path, f"port {sink[1]} of layer {sink[0]} has two sources")
        sources[sink] = source
    for layer in layers.values():
        for port in layer.inputs:
            if (layer.id, port) not in sources:
                raise BadModel(path, f"input port {port} is not connected", layer.name)
    return sources


def _sorted(
    path: Path | str, layers: Mapping[str, IrLayer], sources: Mapping[PortKey, PortKey]
) -> list[IrLayer]:
    """Sort layers so that each comes after its inputs; otherwise keep the file's order."""
    done: set[str] = set()
    order: list[IrLayer] = []
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
