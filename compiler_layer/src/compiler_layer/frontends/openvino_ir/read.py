"""From an IR to a model of the ``ov`` dialect."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from compiler_layer.dialects.ov.constant import Constant, FileView, Inline, InlineAttr, mapped_file
from compiler_layer.dialects.ov.convert import from_bytes
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE, OvOp
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import NUMPY, Shape, Tensor, stored_bytes, tensor
from compiler_layer.errors import BadModel, UnsupportedOps
from compiler_layer.frontends.openvino_ir.ops import RULES, build
from compiler_layer.frontends.openvino_ir.xml import Layer, Network, PortKey, parse_xml
from compiler_layer.model import Model

_SPECIAL = {
    "Parameter": {"opset1"},
    "Const": {"opset1"},
    "Result": {"opset1"},
    "ReadValue": {"opset6"},
    "Assign": {"opset6"},
}

_INLINE_BYTES = 256
"""Constants up to this size are held in the IR: axes, shapes, scalars."""

_MAX_ELEMENTS = 1 << 40


def read_ir(path: str | Path) -> Model:
    """Read an OpenVINO IR.

    Args:
        path: the ``.xml``; the weights are beside it, with the suffix ``.bin``.

    Raises:
        BadModel: a file is missing, broken or inconsistent.
        UnsupportedOps: it has layers or element types that are not understood; all of them.
    """
    xml = Path(path)
    network = parse_xml(xml)
    _check_supported(xml, network)
    return _Reader(xml, network).read()


def _check_supported(path: Path, network: Network) -> None:
    unsupported: list[tuple[str, str]] = []
    for layer in network.layers:
        opsets = _SPECIAL.get(layer.type)
        if opsets is None:
            opsets = RULES[layer.type].opsets if layer.type in RULES else set[str]()
        elements = [layer.data[key] for key in _ELEMENT_ATTRIBUTES if key in layer.data]
        if layer.version not in opsets:
            unsupported.append((layer.kind, layer.name))
        elif any(element not in NUMPY for element in elements):
            unsupported.append((f"{layer.kind} of {elements[0]}", layer.name))
    if unsupported:
        raise UnsupportedOps(path, unsupported)


_ELEMENT_ATTRIBUTES = ("element_type", "destination_type", "output_type", "variable_type")


class _Reader:
    """Builds one model."""

    def __init__(self, path: Path, network: Network) -> None:
        self._path = path
        self._network = network
        self._weights = path.with_suffix(".bin")
        self._weight_bytes = self._weights.stat().st_size if self._weights.exists() else 0
        self._values: dict[PortKey, SSAValue] = {}

    def read(self) -> Model:
        parameters = [layer for layer in self._network.layers if layer.type == "Parameter"]
        # Parameters and results keep their order in the file, as OpenVINO numbers ports.
        parameters.sort(key=lambda layer: layer.position)
        model, arguments = Model.build(
            [(self._port_name(layer), self._parameter_type(layer)) for layer in parameters]
        )
        for layer, argument in zip(parameters, arguments, strict=True):
            self._values[layer.id, layer.outputs[0].id] = argument
        for layer in self._network.layers:
            if layer.type not in ("Parameter", "Result"):
                self._add(model, layer)
        results = [layer for layer in self._network.layers if layer.type == "Result"]
        results.sort(key=lambda layer: layer.position)
        model.set_outputs([self._result(layer) for layer in results])
        return model

    def _bad(self, layer: Layer, message: str) -> BadModel:
        return BadModel(self._path, message, f"layer {layer.name!r} ({layer.kind})")

    def _port_name(self, layer: Layer) -> str:
        names = layer.outputs[0].names if layer.outputs else ()
        return names[0] if names else layer.name

    def _parameter_type(self, layer: Layer) -> Tensor:
        if len(layer.outputs) != 1 or "element_type" not in layer.data:
            raise self._bad(layer, "a parameter needs an element type and one output")
        return tensor(layer.data["element_type"], self._shape(layer, "shape"))

    def _shape(self, layer: Layer, attribute: str) -> Shape:
        text = layer.data.get(attribute)
        if text is None:
            raise self._bad(layer, f"attribute {attribute} is missing")
        try:
            # A bounded dimension "1..8" is dynamic to us.
            parts = [part.strip() for part in text.split(",")] if text else []
            shape = tuple(-1 if p == "?" or ".." in p else int(p) for p in parts)
        except ValueError:
            raise self._bad(layer, f"a shape of {text!r}") from None
        if math.prod(max(d, 1) for d in shape) > _MAX_ELEMENTS or min(shape, default=0) < -1:
            raise self._bad(layer, f"a shape of {text!r}")
        return shape

    def _operands(self, layer: Layer) -> list[SSAValue]:
        return [self._values[self._network.sources[layer.id, port]] for port in layer.inputs]

    def _result(self, layer: Layer) -> tuple[str, SSAValue]:
        if len(layer.inputs) != 1:
            raise self._bad(layer, "a result needs one input")
        source = self._network.sources[layer.id, layer.inputs[0]]
        feeder = next(one for one in self._network.layers if one.id == source[0])
        names = next(port.names for port in feeder.outputs if port.id == source[1])
        return (names[0] if names else layer.name), self._values[source]

    def _add(self, model: Model, layer: Layer) -> None:
        try:
            op = self._make(layer)
        except KeyError as error:
            raise self._bad(layer, f"attribute {error} is missing") from None
        except (ValueError, IndexError) as error:
            raise self._bad(layer, str(error)) from None
        op.attributes[NAME_ATTRIBUTE] = StringAttr(layer.name)
        if len(layer.outputs) != len(op.results):
            raise self._bad(layer, f"{len(layer.outputs)} outputs instead of {len(op.results)}")
        for port, result in zip(layer.outputs, op.results, strict=True):
            self._values[layer.id, port.id] = result
        model.body.insert_op_before(op, model.terminator)

    def _make(self, layer: Layer) -> OvOp:
        if layer.type == "Const":
            return self._constant(layer)
        operands = self._operands(layer)
        if layer.type == "ReadValue":
            shape = self._shape(layer, "variable_shape")
            return ReadValue(
                operands=[operands],
                properties={"variable_id": StringAttr(layer.data["variable_id"])},
                result_types=[tensor(layer.data["variable_type"], shape)],
            )
        if layer.type == "Assign":
            return Assign.make(operands, variable_id=StringAttr(layer.data["variable_id"]))
        return build(layer.type, operands, layer.data)

    def _constant(self, layer: Layer) -> Constant:
        element, shape = layer.data["element_type"], self._shape(layer, "shape")
        offset, size = int(layer.data["offset"]), int(layer.data["size"])
        expected = stored_bytes(element, math.prod(shape))
        if min(shape, default=0) < 0 or size != expected:
            raise self._bad(
                layer, f"{size} bytes for {element} {list(shape)}, which has {expected}"
            )
        if offset < 0 or offset + size > self._weight_bytes:
            raise BadModel(
                self._weights,
                f"has {self._weight_bytes} bytes, the constant lies at {offset} to {offset + size}",
                f"layer {layer.name!r}",
            )
        path = str(self._weights)
        if size > _INLINE_BYTES:
            return Constant.of_file(FileView(path, offset, size, element), element, shape)
        data = bytes(mapped_file(path)[offset : offset + size]) if size else b""
        values = from_bytes(data, element, math.prod(shape)) if size else np.zeros(0)
        value = InlineAttr(Inline(element, values.astype(NUMPY[element]).tobytes()))
        return Constant(properties={"value": value}, result_types=[tensor(element, shape)])
