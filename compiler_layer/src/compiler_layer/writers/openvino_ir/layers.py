"""Layers and edges of an IR, built from a model in the order of its ops.

Layers are numbered in the order parameters, ops, results. Ports are numbered within a layer, inputs
first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from compiler_layer.dialects.ov.constant import Constant, constant_of
from compiler_layer.dialects.ov.elementwise import Convert
from compiler_layer.dialects.ov.op import OvOp
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import Shape, element_of, shape_of
from compiler_layer.elements import FLOATS
from compiler_layer.errors import UnsupportedOps
from compiler_layer.frontends.openvino_ir.ops import attributes_of, kind_of, newest_opset
from compiler_layer.frontends.openvino_ir.rules import RULES
from compiler_layer.model import Model
from compiler_layer.weights import WEIGHT_PREFIX
from compiler_layer.writers.openvino_ir.weights import WeightsWriter

_STATE_OPSET = "opset6"


Place = tuple[int, int]
"""Port of a layer: both numbers."""


@dataclass(frozen=True, slots=True)
class WrittenPort:
    """Port as described in the XML."""

    element: str
    shape: Shape
    names: tuple[str, ...] = ()


@dataclass(slots=True)
class WrittenLayer:
    """Layer as described in the XML; its id is its index in the list."""

    name: str
    type: str
    version: str
    data: dict[str, str] = field(default_factory=dict[str, str])
    inputs: Sequence[WrittenPort] = ()
    outputs: Sequence[WrittenPort] = ()
    output_names: Sequence[str] = ()
    """All tensor names of a result; OpenVINO drops the names that are missing here."""
    decompresses: bool = False
    """True to exempt the layer from constant folding, so that weights stay small in memory."""


def check_layers(model: Model, path: object) -> None:
    """Check that every op is an op of OpenVINO.

    Raises:
        UnsupportedOps: some ops are not; the error lists all.
    """
    unknown = [
        (kind_of(op), op.friendly_name) if isinstance(op, OvOp) else (op.name, "")
        for op in model.body.ops
        if not isinstance(op, ReturnOp) and not _is_known(op)
    ]
    if unknown:
        raise UnsupportedOps(path, unknown)


def _is_known(op: Operation) -> bool:
    special = isinstance(op, Constant | ReadValue | Assign)
    return special or (isinstance(op, OvOp) and kind_of(op) in RULES)


class LayerList:
    """Layers and edges of a model.

    Args:
        model: the model to describe.
        weights: the writer of its constants, which are written during construction.

    Raises:
        BadModel: a constant's file cannot be read.
        OSError: the weights cannot be written.
    """

    def __init__(self, model: Model, weights: WeightsWriter) -> None:
        self.layers: list[WrittenLayer] = []
        self.edges: list[tuple[Place, Place]] = []
        self._weights = weights
        self._sources: dict[SSAValue, Place] = {}
        self._names: set[str] = set()
        self._tensor_names: dict[SSAValue, list[str]] = {}
        for port in (*model.inputs, *model.outputs):
            self._tensor_names.setdefault(port.value, []).append(port.name)
        for port in model.inputs:
            data = {"shape": _dims(shape_of(port.value)), "element_type": element_of(port.value)}
            layer = WrittenLayer(self._unique(port.name), "Parameter", "opset1", data)
            self._add(layer, [], [port.value])
        # Ops keep their own names; generated names must avoid these.
        self._taken = {op.friendly_name for op in model.body.ops if isinstance(op, OvOp)}
        for op in model.body.ops:
            if isinstance(op, OvOp):
                self._add(self._layer(op), op.operands, op.results)
        for port in model.outputs:
            layer = WrittenLayer(self._unnamed("Result"), "Result", "opset1")
            layer.output_names = self._names_of(port.value)
            self._add(layer, [port.value], [])

    def _add(
        self, layer: WrittenLayer, operands: Sequence[SSAValue], results: Sequence[SSAValue]
    ) -> None:
        number = len(self.layers)
        layer.inputs = [WrittenPort(element_of(v), shape_of(v)) for v in operands]
        layer.outputs = [
            WrittenPort(element_of(v), shape_of(v), self._names_of(v)) for v in results
        ]
        for port, operand in enumerate(operands):
            self.edges.append((self._sources[operand], (number, port)))
        for port, result in enumerate(results):
            self._sources[result] = (number, len(operands) + port)
        self.layers.append(layer)

    def _names_of(self, value: SSAValue) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._tensor_names.get(value, ())))

    def _layer(self, op: OvOp) -> WrittenLayer:
        kind = kind_of(op)
        name = self._unique(op.friendly_name) if op.friendly_name else self._unnamed(kind)
        match op:
            case Constant():
                return WrittenLayer(name, "Const", "opset1", self._constant(op))
            case ReadValue():
                data = {
                    "variable_id": op.variable_id.data,
                    "variable_type": element_of(op.output),
                    "variable_shape": _dims(shape_of(op.output)),
                }
                return WrittenLayer(name, kind, _STATE_OPSET, data)
            case Assign():
                data = {"variable_id": op.variable_id.data}
                return WrittenLayer(name, kind, _STATE_OPSET, data)
            case _:
                layer = WrittenLayer(name, kind, newest_opset(kind), attributes_of(op))
                layer.decompresses = self._decompresses(op)
                return layer

    def _decompresses(self, op: Operation) -> bool:
        """Return whether an op widens a stored weight, which is a constant or an input."""
        if not isinstance(op, Convert):
            return False
        stored, wide = element_of(op.x), element_of(op.output)
        return self._is_weight(op.x) and {stored, wide} <= FLOATS and stored != wide

    def _is_weight(self, value: SSAValue) -> bool:
        names = self._tensor_names.get(value, ())
        return constant_of(value) is not None or any(n.startswith(WEIGHT_PREFIX) for n in names)

    def _constant(self, op: Constant) -> dict[str, str]:
        offset, size = self._weights.add(op)
        return {
            "element_type": element_of(op.output),
            "shape": _dims(shape_of(op.output)),
            "offset": str(offset),
            "size": str(size),
        }

    def _unnamed(self, kind: str) -> str:
        number = len(self.layers)
        while f"{kind}_{number}" in self._taken:
            number += 1
        return self._unique(f"{kind}_{number}")

    def _unique(self, name: str) -> str:
        """Return the name, with a number appended if it is taken."""
        found, number = name, 0
        while found in self._names:
            number += 1
            found = f"{name}_{number}"
        self._names.add(found)
        return found


def _dims(shape: Shape) -> str:
    """Format a shape as an attribute: ``?,4,?,32``."""
    return ",".join("?" if d < 0 else str(d) for d in shape)
