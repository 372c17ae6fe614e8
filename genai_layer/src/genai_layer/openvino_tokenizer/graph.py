"""Graph of a tokenizer model: its ops, constants and rt_info; the files are untrusted.

Source: OpenVINO IR version 11, as openvino.save_model writes it.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from genai_layer.errors import ModelError

MAX_LAYERS = 4096
MAX_STRINGS = 1 << 22
REMEDY = "add the tokenizer.json of the model's Hugging Face folder"

_TYPES = {"i32": "<i4", "i64": "<i8", "u8": "u1", "f16": "<f2", "f32": "<f4"}


@dataclass(slots=True)
class Node:
    """Layer of a tokenizer model."""

    id: str
    name: str
    type: str
    data: dict[str, str] = field(default_factory=dict[str, str])
    ports: list[str] = field(default_factory=list[str])
    """Ids of the input ports, in order."""

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a boolean attribute."""
        return self.data.get(name, str(default)).lower() in ("true", "1")


class Graph:
    """Layers of one model, and the values of its constants.

    Args:
        xml: the model.
        weights: the content of the ``.bin``.
        name: the name of the model in errors.

    Raises:
        ModelError: the XML is not an IR, or has a document type.
    """

    def __init__(self, xml: str, weights: bytes, name: str) -> None:
        self.name = name
        self._weights = weights
        target: Any = _Target()
        try:
            parser = ET.XMLParser(target=target)
            parser.feed(xml)
            parser.close()
        except KeyError as error:
            raise self.error(f"is not an OpenVINO IR: attribute {error} is missing") from None
        except (ET.ParseError, ValueError, LookupError) as error:
            raise self.error(f"is not an OpenVINO IR: {error}") from None
        self.nodes: dict[str, Node] = target.nodes
        self._sources: dict[tuple[str, str], str] = target.sources
        self.rt_info: dict[str, str] = target.rt_info

    def error(self, problem: str, remedy: str = "") -> ModelError:
        """Return an error of this model."""
        return ModelError(f"{self.name}: {problem}" + (f"; {remedy}" if remedy else ""))

    def unsupported(self, node: Node, problem: str) -> ModelError:
        """Return the error of an op that has no exact counterpart here."""
        return self.error(f"{node.type} ({node.name}): {problem}", REMEDY)

    def only(self, *types: str) -> Node:
        """Return the one op of some types.

        Raises:
            ModelError: there is none, or there are several.
        """
        found = [node for node in self.nodes.values() if node.type in types]
        if len(found) != 1:
            named = " or ".join(types)
            raise self.error(f"has {len(found)} ops {named}, where one is supported", REMEDY)
        return found[0]

    def source(self, node: Node, index: int) -> Node:
        """Return the op that feeds an input.

        Raises:
            ModelError: the input does not exist, or is not connected.
        """
        if not 0 <= index < len(node.ports):
            raise self.unsupported(node, f"input {index} is missing")
        found = self.nodes.get(self._sources.get((node.id, node.ports[index]), ""))
        if found is None:
            raise self.error(f"input {index} of {node.name} is not connected")
        return found

    def number(self, node: Node, name: str, default: int) -> int:
        """Return an integer attribute."""
        given = node.data.get(name, str(default))
        if not given.removeprefix("-").isdecimal() or len(given) > 9:
            raise self.unsupported(node, f"{name}={given!r} is not an integer")
        return int(given)

    def chain(self, last: Node, first: str, inputs: dict[str, int]) -> list[Node]:
        """Return the ops from the one of type ``first`` to ``last``, without ``first``.

        Args:
            last: the end of the chain.
            first: the type of the op before the chain.
            inputs: the input that carries the text, by type of op.

        Raises:
            ModelError: an op has another type.
        """
        found: list[Node] = []
        node = last
        while node.type != first:
            if node.type not in inputs or len(found) > MAX_LAYERS:
                raise self.unsupported(node, "the op is not supported")
            found.append(node)
            node = self.source(node, inputs[node.type])
        return found[::-1]

    def is_constant(self, node: Node, index: int) -> bool:
        """Return whether an input is a constant."""
        return self.source(node, index).type == "Const"

    def array(self, node: Node, index: int) -> np.ndarray[Any, Any]:
        """Return the constant of an input, flat.

        Raises:
            ModelError: the input is not a constant, or lies outside of the weights.
        """
        constant = self.source(node, index)
        if constant.type == "Convert":  # constants of floats are stored in half precision
            constant = self.source(constant, 0)
        if constant.type != "Const":
            raise self.unsupported(node, f"input {index} is not a constant")
        try:
            kind = np.dtype(_TYPES[constant.data["element_type"]])
            shape = [int(dim) for dim in constant.data["shape"].split(",") if dim]
            offset, size = int(constant.data["offset"]), int(constant.data["size"])
        except (KeyError, ValueError) as error:
            raise self.error(f"constant {constant.name} is not supported: {error}") from None
        count = math.prod(shape)
        if min([*shape, offset, size]) < 0 or size < count * kind.itemsize:
            raise self.error(f"constant {constant.name} has a wrong size")
        if offset + count * kind.itemsize > len(self._weights):
            raise self.error(f"constant {constant.name} lies outside of the weights")
        return np.frombuffer(self._weights, kind, count, offset if count else 0)

    def integer(self, node: Node, index: int) -> int:
        """Return the constant integer of an input."""
        found = self.array(node, index)
        if found.size != 1 or found.dtype.kind == "f":
            raise self.unsupported(node, f"input {index} is not an integer")
        return int(found[0])

    def text(self, node: Node, index: int) -> str:
        """Return the constant text of an input."""
        return self.decoded(node, self.array(node, index).tobytes())

    def decoded(self, node: Node, data: bytes) -> str:
        """Return bytes as text.

        Raises:
            ModelError: the bytes are not UTF-8.
        """
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise self.unsupported(node, f"{data[:40]!r} is not UTF-8") from None

    def strings(self, node: Node, index: int) -> list[bytes]:
        """Return the constant strings of three inputs: begins, ends, bytes.

        Raises:
            ModelError: the inputs contradict each other.
        """
        begins, ends = self.array(node, index), self.array(node, index + 1)
        data = self.array(node, index + 2).tobytes()
        if begins.shape != ends.shape or begins.size > MAX_STRINGS or begins.dtype.kind == "f":
            raise self.error(f"{node.name}: the strings of input {index} are broken")
        # Disjoint strings cannot be longer than their bytes.
        if begins.size and (
            begins[0] < 0
            or ends[-1] > len(data)
            or (begins > ends).any()
            or (begins[1:] < ends[:-1]).any()
        ):
            raise self.error(f"{node.name}: the strings of input {index} are broken")
        return [data[b:e] for b, e in zip(begins.tolist(), ends.tolist(), strict=True)]


class _Target:
    """Receiver of the XML parser's events; document types are rejected."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.sources: dict[tuple[str, str], str] = {}
        self.rt_info: dict[str, str] = {}
        self._path: list[str] = []
        self._node = Node("", "", "")

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise ValueError("a document type declaration is not allowed")

    def start(self, tag: str, attrs: dict[str, str]) -> None:
        self._path.append(tag)
        match self._path:
            case ["net", "layers", "layer"]:
                self._node = Node(attrs["id"], attrs["name"], attrs["type"])
                if self._node.id in self.nodes or len(self.nodes) == MAX_LAYERS:
                    raise ValueError(f"more than {MAX_LAYERS} layers, or two of the same id")
                self.nodes[self._node.id] = self._node
            case ["net", "layers", "layer", "data"]:
                self._node.data = dict(attrs)
            case ["net", "layers", "layer", "input", "port"]:
                self._node.ports.append(attrs["id"])
            case ["net", "edges", "edge"]:
                self.sources[attrs["to-layer"], attrs["to-port"]] = attrs["from-layer"]
            case ["net", "rt_info", _]:
                if "value" in attrs:
                    self.rt_info[tag] = attrs["value"]
            case _ if len(self._path) > MAX_LAYERS:
                raise ValueError("the elements are nested too deeply")
            case _:
                pass

    def end(self, tag: str) -> None:
        del tag, self._path[-1]
