"""Reader of IRs into models of the ``ov`` dialect."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from compiler_layer.dialects.ov.constant import Constant, values_of
from compiler_layer.dialects.ov.constant_value import Inline, InlineAttr
from compiler_layer.dialects.ov.op import NAME_ATTRIBUTE, OvOp
from compiler_layer.dialects.ov.shape import Range
from compiler_layer.dialects.ov.state import Assign, ReadValue
from compiler_layer.dialects.ov.types import (
    Shape,
    Tensor,
    check_shape,
    element_of,
    is_static,
    shape_of,
    tensor,
)
from compiler_layer.elements import NUMPY, from_bytes, stored_bytes
from compiler_layer.errors import BadModel
from compiler_layer.files import FileView, MemoryView
from compiler_layer.frontends.openvino_ir.ops import build
from compiler_layer.frontends.openvino_ir.supported import (
    CACHE_ELEMENT,
    DYNAMIC,
    PRECISIONS,
    check_supported,
    is_absent,
    open_caches,
)
from compiler_layer.frontends.openvino_ir.xml import (
    IrLayer,
    Network,
    OutputPort,
    PortKey,
    parse_xml,
)
from compiler_layer.model import Model
from compiler_layer.reference.interpreter import evaluate
from driver_layer.support.progress import counted

_COUNTED = 16
"""Maximum length of a Range that becomes a constant; lists of axes are shorter."""

_INLINE_BYTES = 256
"""Maximum size of constants held in the IR: axes, shapes, scalars."""


def read_ir(path: str | Path) -> Model:
    """Read an OpenVINO IR.

    Args:
        path: the ``.xml``; the weights are in the ``.bin`` file of the same name.

    Raises:
        BadModel: a file is missing, damaged or inconsistent.
        UnsupportedOps: layers or element types are not supported; the error lists all.
    """
    xml = Path(path)
    network, weights = parse_xml(xml), xml.with_suffix(".bin")
    size = weights.stat().st_size if weights.is_file() else 0  # a missing file counts as empty
    return _Reader(xml, network, FileView(str(weights), 0, size, "u8")).read()


def read_network(network: Network, weights: memoryview, name: str) -> Model:
    """Read an OpenVINO IR that is in memory.

    Args:
        network: the parsed XML (``xml.parse_text``).
        weights: the weights; the model's constants are views of them.
        name: the model's name in errors, which are as in ``read_ir``.
    """
    return _Reader(name, network, MemoryView(name, 0, len(weights), "u8", weights)).read()


class _Reader:
    def __init__(self, path: Path | str, network: Network, weights: FileView) -> None:
        self._path = path
        self._network = network
        self._weights = weights
        self._values: dict[PortKey, SSAValue] = {}
        self._variables: dict[str, str] = {}
        self._open_caches = open_caches(network)

    def read(self) -> Model:
        check_supported(self._path, self._network)
        self._variables = self._read_variables()
        parameters = self._network.ports("Parameter")
        types = [self._parameter_type(layer) for layer in parameters]
        names = [(*layer.outputs[0].names, layer.name)[0] for layer in parameters]
        for name, count in Counter(names).items():
            if count > 1:
                raise BadModel(self._path, f"{count} parameters have the name {name!r}")
        model, arguments = Model.build(list(zip(names, types, strict=True)))
        for layer, argument in zip(parameters, arguments, strict=True):
            self._set_values(layer, [argument])
        with counted("reading the graph", len(self._network.layers), "ops") as advance:
            for layer in self._network.layers:
                if layer.type not in ("Parameter", "Result"):
                    self._add(model, layer)
                advance(1)
        self._set_outputs(model, self._network.ports("Result"))
        return model

    def _read_variables(self) -> dict[str, str]:
        """Return the element types of the variables; each has one ReadValue, at most one Assign."""
        named: dict[str, dict[str, IrLayer]] = {"ReadValue": {}, "Assign": {}}
        for layer in self._network.layers:
            if layer.type in named:
                same = named[layer.type].setdefault(layer.data.get("variable_id", ""), layer)
                if same is not layer:
                    raise self._bad(layer, f"layer {same.name!r} has the same variable")
        for name, layer in named["Assign"].items():
            if name not in named["ReadValue"]:
                raise self._bad(layer, f"no layer reads its variable {name!r}")
        return {name: self._variable_element(layer) for name, layer in named["ReadValue"].items()}

    def _variable_element(self, layer: IrLayer) -> str:
        element = layer.data.get("variable_type", "")
        if element != DYNAMIC:
            return element
        # The type is that of the initial value, which the output port declares.
        declared = [port.precision for port in layer.outputs if port.precision]
        if len(declared) != 1 or not layer.inputs:
            raise self._bad(layer, "a variable of dynamic type needs an initial value")
        return PRECISIONS[declared[0]]

    def _bad(self, layer: IrLayer, message: str) -> BadModel:
        return BadModel(self._path, message, f"layer {layer.name!r} ({layer.kind})")

    def _parameter_type(self, layer: IrLayer) -> Tensor:
        if len(layer.outputs) != 1 or "element_type" not in layer.data:
            raise self._bad(layer, "a parameter needs an element type and one output")
        is_open = layer.id in self._open_caches
        element = CACHE_ELEMENT if is_open else layer.data["element_type"]
        return tensor(element, self._shape(layer, "shape"))

    def _shape(self, layer: IrLayer, attribute: str) -> Shape:
        text = layer.data.get(attribute)
        if text is None:
            raise self._bad(layer, f"attribute {attribute} is missing")
        try:
            # A bounded dimension "1..8" is treated as dynamic.
            parts = [part.strip() for part in text.split(",")] if text else []
            shape = tuple(-1 if p == "?" or ".." in p else int(p) for p in parts)
            check_shape(shape)
        except ValueError:
            raise self._bad(layer, f"{text!r} is not a valid shape") from None
        return shape

    def _operands(self, layer: IrLayer) -> list[SSAValue]:
        return [self._values[self._network.sources[layer.id, port]] for port in layer.inputs]

    def _set_outputs(self, model: Model, results: Sequence[IrLayer]) -> None:
        """Name results by their tensor; a second result of a tensor is named by its layer."""
        outputs: dict[str, SSAValue] = {}
        for layer in results:
            if len(layer.inputs) != 1:
                raise self._bad(layer, "a result needs one input")
            _, port = self._network.feeder(layer, 0)
            free = [name for name in (*port.names[:1], layer.name) if name not in outputs]
            if not free:
                raise self._bad(layer, "another result has the same name")
            (outputs[free[0]],) = self._operands(layer)
        model.set_outputs(list(outputs.items()))

    def _set_values(self, layer: IrLayer, values: Sequence[SSAValue]) -> None:
        """Record the values of a layer's output ports, and check the declarations."""
        if len(layer.outputs) != len(values):
            raise self._bad(layer, f"{len(layer.outputs)} outputs instead of {len(values)}")
        for port, value in zip(layer.outputs, values, strict=True):
            is_open = is_absent(layer) or layer.id in self._open_caches
            if not is_open and not _is_as_declared(port, value):
                raise self._bad(
                    layer,
                    f"output port {port.id} is declared {port.precision} {port.dims}, "
                    f"but is {element_of(value)} {list(shape_of(value))}",
                )
            self._values[layer.id, port.id] = value

    def _add(self, model: Model, layer: IrLayer) -> None:
        try:
            op = self._make(model, layer)
        except KeyError as error:
            raise self._bad(layer, f"attribute {error} is missing") from None
        except (ValueError, VerifyException) as error:
            raise self._bad(layer, str(error)) from None
        op.attributes[NAME_ATTRIBUTE] = StringAttr(layer.name)
        self._set_values(layer, op.results)
        model.body.insert_op_before(op, model.terminator)

    def _make(self, model: Model, layer: IrLayer) -> OvOp:
        if layer.type == "Const":
            absent = Constant.inline(np.empty(0, np.float32))
            return absent if is_absent(layer) else self._constant(layer)
        operands = self._operands(layer)
        if layer.type in ("ReadValue", "Assign"):
            return self._variable(layer, operands)
        if layer.type == "Squeeze" and operands and not is_static(shape_of(operands[0])):
            operands += self._declared_axes(model, layer)
        op = build(layer.type, operands, layer.data)
        return _counted(op) if isinstance(op, Range) else op

    def _declared_axes(self, model: Model, layer: IrLayer) -> list[SSAValue]:
        """Return the axes of a Squeeze without an axes input, if the file determines them.

        The operand's shape may depend on arithmetic that is evaluated later; OpenVINO has evaluated
        it already, and declares the result in the file. The axes are the dimensions declared as 1,
        if their number equals that of the removed ones.
        """
        _, source = self._network.feeder(layer, 0)
        declared = layer.outputs and layer.outputs[0].precision and source.precision
        if len(layer.inputs) > 1 or not declared:
            return []
        axes = [axis for axis, dim in enumerate(source.dims) if dim == 1]
        if len(axes) != len(source.dims) - len(layer.outputs[0].dims):
            return []
        constant = Constant.inline(np.array(axes, np.int64))
        model.body.insert_op_before(constant, model.terminator)
        return [constant.output]

    def _variable(self, layer: IrLayer, operands: Sequence[SSAValue]) -> OvOp:
        name = layer.data["variable_id"]
        element = self._variables[name]
        if any(element_of(operand) != element for operand in operands):
            raise ValueError(f"variable {name!r} is {element}, its value {operands[0].type}")
        if layer.type == "Assign":
            if len(operands) != 1:
                raise ValueError(f"{len(operands)} inputs instead of 1")
            return Assign.make(operands, variable_id=StringAttr(name))
        if len(operands) > 1:
            raise ValueError(f"{len(operands)} inputs, but at most 1 is possible")
        return ReadValue(
            operands=[operands],
            properties={"variable_id": StringAttr(name)},
            result_types=[tensor(element, self._variable_shape(layer))],
        )

    def _variable_shape(self, layer: IrLayer) -> Shape:
        if layer.data.get("variable_type") != DYNAMIC:
            return self._shape(layer, "variable_shape")
        return tuple(layer.outputs[0].dims)

    def _constant(self, layer: IrLayer) -> Constant:
        element, shape = layer.data["element_type"], self._shape(layer, "shape")
        offset, size = int(layer.data["offset"]), int(layer.data["size"])
        expected = stored_bytes(element, math.prod(shape))
        # OpenVINO writes one byte for a constant without elements.
        fits = size == expected or (expected == 0 and size == 1)
        if min(shape, default=0) < 0 or not fits:
            raise self._bad(
                layer, f"{size} bytes for {element} {list(shape)}, which needs {expected}"
            )
        if offset < 0 or offset + size > self._weights.size:
            raise BadModel(
                self._weights.path,
                f"has {self._weights.size} bytes; the constant is at {offset} to {offset + size}",
                f"layer {layer.name!r}",
            )
        view = replace(self._weights, offset=offset, size=size, element=element)
        if size > _INLINE_BYTES:
            return Constant.of_file(view, element, shape)
        data = bytes(view.raw) if size else b""
        values = from_bytes(data, element, math.prod(shape)) if expected else np.zeros(0)
        value = InlineAttr(Inline(element, values.astype(NUMPY[element]).tobytes()))
        return Constant(properties={"value": value}, result_types=[tensor(element, shape)])


def _counted(op: Range) -> OvOp:
    """Replace a short Range of constants by its numbers: ops need known axes when created."""
    bounds = [values_of(bound) for bound in op.operands]
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds) or shape_of(op.output)[0] > _COUNTED:
        return op
    (values,) = evaluate(op, known)
    return Constant.inline(values, element_of(op.output))


def _is_as_declared(port: OutputPort, value: SSAValue) -> bool:
    """Return whether a value agrees with the file's declaration; -1 is any dimension."""
    if not port.precision:
        return True
    shape = shape_of(value)
    if PRECISIONS[port.precision] != element_of(value) or len(port.dims) != len(shape):
        return False
    return all(a == b or -1 in (a, b) for a, b in zip(port.dims, shape, strict=True))
